"""Keys that the user named and the server does not enforce: proven to be unique, and folded by balancing images.

One statement may pass such a key on from row to row. It is captured row by row, so that a row can come to a key before
the one that was there leaves it, and the last event of a key says nothing of what is left. Images do: what is left is
what was there, and what came, without what went. LOBs are no part of an image, since CDC leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.exceptions import CopyUncertainError, KeyRequiredError, TargetError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, is_old_image, no_names, renamed, same_key

_SIGN, _NET, _SUM, _CAME, _WENT, _LEFT, _HELD, _NUMBER, _THROUGH, _MOVED, _LEAST, _AT_ONCE = (
    TEMPORARY + name
    for name in ("sign", "net", "sum", "came", "went", "left", "held", "number", "through", "moved", "least", "at_once")
)
_EXAMPLES = 3
"""Keys that an error names."""

# A row that goes through a key, coming and going within one transaction, leaves what was there as it was: either it was
# another row with the same image that went, or nothing was there.


@dataclass(frozen=True, slots=True)
class RowsOfCopy:
    """What a copy and the events beside it come to.

    :param stay: copied rows of which no event tells
    :param through: copied rows that others with the same image went through
    :param others: copied rows that one of several events with their image brought, nobody knows which
    :param was: the images that went without having come: they were there before all events
    :param left: the events of the other rows that are there at the end
    :param gone: the last image of each key of which no row is left
    """

    stay: DataFrame
    through: DataFrame
    others: DataFrame
    was: DataFrame
    left: DataFrame
    gone: DataFrame


@dataclass(frozen=True, slots=True)
class UnenforcedKey:
    """The key of one table.

    :param key: the target's columns of the key
    :param image: its other columns by which a row is known again
    :param position: the column of an event's position, which its whole transaction has
    :param has_lobs: whether there are columns beside these, which tell rows apart that look the same
    :param lobs: those of them that CDC may leave out
    """

    table: TableName
    key: Sequence[str]
    image: Sequence[str]
    position: str
    has_lobs: bool
    lobs: tuple[str, ...] = ()

    def changes(self, events: DataFrame, target_rows: DataFrame, *, few: bool = False) -> DataFrame:
        """One event for each key that changed: of the row that is left, or one that says that it is gone.

        :param events: staged rows of a window, with all before images
        :param target_rows: the mirror's rows, those of before the window
        :param few: the keys of the events can be broadcast
        :raises KeyRequiredError: if several rows are left of one key
        :raises TargetError: if a column's value is not sure, since a row with the same other columns had the key too
        """
        by_key = self._beside_target_rows(events, by_keys_of(target_rows, events, self.key, "left_semi", broadcast=few))
        self._refuse(by_key)
        return events.join(by_key.select(F.col(_NUMBER).alias("_n")), "_n", "left_semi")

    def first_rows(self, copied: DataFrame, events: DataFrame, sure: DataFrame | None) -> RowsOfCopy:
        """What a copy comes to.

        :param copied: rows, each of some moment within the window
        :param events: staged rows of the window, with all before images
        :param sure: keys of which the copy has the row that is there at the window's end, or none is; None for none
        :raises KeyRequiredError: if several rows are left of one key
        :raises CopyUncertainError: if the copy does not tell what was there
        """
        by_image = self._without_target_rows(events)
        self._refuse_several(by_image.where(F.col(_LEFT) > 1))
        left = self._left(events, by_image)
        if not self._unsure(copied, by_image, sure).isEmpty():
            raise CopyUncertainError(
                "rows passed keys on while the table was copied, so that the copy does not tell which one is left.",
                table=str(self.table),
                advice="Run the task again: the rows of these keys are read again.",
            )
        stay = by_keys_of(copied, by_image, self._names, "left_anti")
        through, others = (
            by_keys_of(copied, by_image.where(which), self._names, "left_semi").dropDuplicates(self._names)
            for which in (F.col(_THROUGH), F.col(_AT_ONCE))
        )
        if sure is not None:
            self.refuse_duplicates(by_keys_of(copied, sure, self.key, "left_semi"))
        there = reduce(DataFrame.unionAll, [rows.select(*self._key()) for rows in (stay, through, others, left)])
        self.refuse_duplicates(there)
        went = by_keys_of(events.where(is_old_image()), there, self.key, "left_anti")
        gone = went.join(went.groupBy(*self._key()).agg(F.max("_n").alias("_n")), "_n", "left_semi")
        return RowsOfCopy(stay, through, others, self._before_all(events), left, gone)

    def left(self, events: DataFrame) -> DataFrame:
        """The events of rows that are left at a window's end, where the window alone tells that.

        :param events: staged rows of the window, with all before images
        """
        return self._left(events, self._without_target_rows(events))

    def unsure(self, copied: DataFrame, events: DataFrame, sure: DataFrame | None) -> DataFrame:
        """The keys of which a copy does not tell what was there; parameters as of ``first_rows``."""
        return self._unsure(copied, self._without_target_rows(events), sure)

    def told_at_end(self, rows: DataFrame, events: DataFrame) -> DataFrame:
        """Fill in the LOBs of events behind which nothing has happened to their row.

        :param rows: as they are at the end
        """
        left = self.left(events)
        rows = by_keys_of(self.alone(rows), left, self._names, "left_semi")
        held = rows.select(*renamed(self.key), F.struct(*map(column, self.lobs)).alias(_HELD))
        numbers = left.join(held, same_key(self.key)).select("_n", _HELD).localCheckpoint()
        is_told, told = F.col(_HELD).isNotNull(), F.col(_HELD)
        values = {
            lob: F.when(is_told & F.array_contains("_unknown", F.lit(lob)), told.getField(lob)).otherwise(column(lob))
            for lob in self.lobs
        }
        unknown = F.when(is_told, no_names()).otherwise(F.col("_unknown"))
        filled = events.join(numbers, "_n", "left").withColumns({**values, "_unknown": unknown})
        return filled.select(*map(column, events.columns))

    def refuse_duplicates(self, rows: DataFrame) -> None:
        """Prove that no two rows have the same key.

        :raises KeyRequiredError: with examples, if some have
        """
        self._refuse_several(rows.groupBy(*self._key()).agg(F.count("*").alias(_SUM)).where(F.col(_SUM) > 1))

    def alone(self, rows: DataFrame) -> DataFrame:
        """The rows whose key no other one has."""
        by_key = rows.groupBy(*renamed(self.key)).agg(F.count("*").alias(_SUM))
        return rows.join(by_key.where(F.col(_SUM) == 1), same_key(self.key), "left_semi")

    def _beside_target_rows(self, events: DataFrame, target_rows: DataFrame) -> DataFrame:
        names = [*self._key(), *map(column, self.image)]
        rows = _signed(events).withColumn(_SUM, self._so_far() if self.has_lobs else F.lit(0).cast("bigint"))
        by_transaction = (
            rows.groupBy(*names, self.position)
            .agg(F.sum(_SIGN).alias(_NET), F.lit(0).alias(_HELD), *_numbers(), *_sums())
            # between two transactions it was there; what only went through was not
            .withColumn(_WENT, F.when(F.col(_NET) < 0, F.col(_WENT)))
            .drop(self.position)
        )
        here = target_rows.select(
            *names,
            F.lit(1).cast("bigint").alias(_NET),
            F.lit(1).alias(_HELD),
            *(F.lit(None).cast("bigint").alias(name) for name in (_CAME, _WENT, _SUM, _LEAST)),
        )
        by_image = (
            by_transaction.unionByName(here)
            .groupBy(*names)
            .agg(
                F.greatest(F.sum(_NET), F.lit(0)).alias(_LEFT),
                (F.max_by(_SUM, _CAME) + F.greatest(-F.min(_LEAST), F.max(_HELD))).alias(_SUM),
                *(F.max(name).alias(name) for name in (_CAME, _WENT)),
            )
        )
        put = F.when(F.col(_LEFT) > 0, F.col(_CAME))
        by_key = by_image.groupBy(*self._key()).agg(
            F.sum(_LEFT).alias(_LEFT),
            F.max(_WENT).alias(_WENT),
            F.max(put).alias(_CAME),
            F.max((F.col(_SUM) > 1) & put.isNotNull()).alias(_AT_ONCE),
        )
        return by_key.withColumn(_NUMBER, F.when(F.col(_LEFT) > 0, F.col(_CAME)).otherwise(F.col(_WENT)))

    def _without_target_rows(self, events: DataFrame) -> DataFrame:
        """Balance events beside rows of which nobody knows whether they are those of before or of after.

        An image that goes before it comes was there at the beginning. Of others only those that went through leave
        that open: the key is unique between transactions. Without an update of the key they were not there either: the
        row that was changed on its way had it.
        """
        names = [*self._key(), *map(column, self.image)]
        rows = _signed(events).withColumns(
            {
                _SUM: self._so_far(),
                _NET: F.sum(_SIGN).over(Window.partitionBy(*names, self.position)),
            }
        )
        found = rows.groupBy(*names).agg(
            (F.sum(_SIGN) + F.greatest(-F.min(_SUM), F.lit(0))).alias(_LEFT),
            ((F.min(_SUM) >= 0) & ~F.max(F.col(_NET) != 0)).alias(_THROUGH),
            F.max("_key_changed").alias(_MOVED),
            *_numbers(),
            *_sums(),
        )
        at_once = (F.col(_SUM) + F.greatest(-F.col(_LEAST), F.lit(0)) > 1) & F.lit(self.has_lobs)
        return found.withColumns(
            {
                _NUMBER: F.when(F.col(_LEFT) > 0, F.col(_CAME)),
                _AT_ONCE: ~F.col(_THROUGH) & (F.col(_LEFT) > 0) & F.coalesce(at_once, F.lit(False)),
            }
        )

    def _so_far(self) -> Column:
        """How many rows with an image have come and not gone, up to an event."""
        of_image = Window.partitionBy(*self._key(), *map(column, self.image)).orderBy("_n")
        return F.sum(_SIGN).over(of_image.rowsBetween(Window.unboundedPreceding, 0))

    def _before_all(self, events: DataFrame) -> DataFrame:
        """The images that went without having come: they were there before all events.

        Where others with the same image came before, one of these may have gone: its LOBs are not known.
        """
        of_image = Window.partitionBy(*self._key(), *map(column, self.image)).orderBy("_n")
        least = F.min(_SUM).over(of_image.rowsBetween(Window.unboundedPreceding, -1))
        rows = _signed(events).withColumn(_SUM, self._so_far()).withColumn(_LEAST, least)
        went = rows.where(F.col(_SUM) < F.least(F.lit(0), F.col(_LEAST)))
        values = {name: F.when(F.col(_LEAST).isNull(), column(name)) for name in self.lobs}
        lobs = F.array(*map(F.lit, self.lobs)).cast("array<string>")
        unknown = F.when(F.col(_LEAST).isNull(), F.col("_unknown")).otherwise(lobs)
        return went.withColumns({**values, "_unknown": unknown}).drop(_SIGN, _SUM, _LEAST)

    def _left(self, events: DataFrame, by_image: DataFrame) -> DataFrame:
        number = by_image.where(~F.col(_THROUGH) & ~F.col(_AT_ONCE)).select(F.col(_NUMBER).alias("_n"))
        return events.join(number, "_n", "left_semi")

    def _unsure(self, copied: DataFrame, by_image: DataFrame, sure: DataFrame | None) -> DataFrame:
        """The keys through which rows went, and of which the copy does not tell what that left.

        A scan that meets rows on the move may miss one, or meet it twice; LOBs tell rows apart that look the same.
        """
        if (open_ := by_image.where(F.col(_THROUGH) | F.col(_AT_ONCE))).isEmpty():
            return open_.select(*self._key())
        through = by_image.where(_THROUGH)
        unsure = by_keys_of(through.where(_MOVED), copied, self._names, "left_anti").select(*self._key())
        if self.has_lobs:
            there = by_keys_of(copied, through, self._names, "left_semi")
            several = by_image.where(_AT_ONCE)
            unsure = unsure.unionAll(there.select(*self._key())).unionAll(several.select(*self._key()))
        return unsure if sure is None else by_keys_of(unsure, sure, self.key, "left_anti")

    @property
    def _names(self) -> list[str]:
        return [*self.key, *self.image]

    def _key(self) -> list[Column]:
        return [column(name) for name in self.key]

    def _examples(self, rows: Sequence[Row]) -> str:
        return "; ".join(", ".join(f"{name}={row[name]!r}" for name in self.key) for row in rows)

    def _refuse(self, by_key: DataFrame) -> None:
        """Refuse keys of which several rows are left, and those of which it is not sure which one is."""
        several = F.col(_LEFT) > 1
        bad = by_key.where(several | F.col(_AT_ONCE) if self.has_lobs else several)
        found = bad.select(*self._key(), several.alias(_SUM)).orderBy(F.desc(_SUM)).limit(_EXAMPLES).collect()
        self._refuse_rows([row for row in found if row[_SUM]])
        if found:
            raise TargetError(
                f"two rows that differ at most in columns that CDC leaves out had the key {self._examples(found)} "
                "within one transaction, so that it is not sure which one is left.",
                table=str(self.table),
                advice="To load the mirror anew, drop it and run `mssql-cdc checkpoint reset --shape mirror`.",
            )

    def _refuse_several(self, rows: DataFrame) -> None:
        self._refuse_rows(rows.select(*self._key()).limit(_EXAMPLES).collect())

    def _refuse_rows(self, rows: Sequence[Row]) -> None:
        if rows:
            raise KeyRequiredError(
                f"the key {list(self.key)} is not unique: several rows have {self._examples(rows)}.",
                table=str(self.table),
                advice="Name columns that identify a row as the key of its entry in tables.",
            )


def _signed(events: DataFrame) -> DataFrame:
    return events.withColumn(_SIGN, F.when(F.col("_op").isin("I", "U"), 1).otherwise(-1))


def _sums() -> list[Column]:
    """How many rows had come and not gone at the last that came, and at the least."""
    came = F.when(F.col(_SIGN) > 0, F.col("_n"))
    return [F.max_by(_SUM, came).alias(_SUM), F.min(_SUM).alias(_LEAST)]


def _numbers() -> list[Column]:
    """The last number of an image that came, and of one that went."""
    return [
        F.max(F.when(F.col(_SIGN) > 0, F.col("_n"))).alias(_CAME),
        F.max(F.when(F.col(_SIGN) < 0, F.col("_n"))).alias(_WENT),
    ]
