"""Keys that the user named and the server does not enforce: proven to be unique, and folded by balancing images.

One statement may pass such a key on from row to row. It is captured row by row, so that a row can come to a key before
the one that was there leaves it, and the last event of a key says nothing of what is left. Images do: what is left is
what was there, and what came, without what went. LOBs are no part of an image, since CDC leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.exceptions import CopyUncertainError, KeyRequiredError, TargetError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, is_old_image, renamed, same_key

_SIGN, _NET, _SUM, _CAME, _WENT, _LEFT, _HELD, _NUMBER, _THROUGH, _MOVED, _LEAST = (
    TEMPORARY + name
    for name in ("sign", "net", "sum", "came", "went", "left", "held", "number", "through", "moved", "least")
)
_EXAMPLES = 3
"""Keys that an error names."""

# A row that goes through a key, coming and going within one transaction, leaves what was there as it was: either it was
# another row with the same image that went, or nothing was there.


@dataclass(frozen=True, slots=True)
class UnenforcedKey:
    """The key of one table.

    :param key: the target's columns of the key
    :param image: its other columns by which a row is known again
    :param position: the column of an event's position, which its whole transaction has
    :param has_lobs: whether there are columns beside these, which CDC may leave out
    """

    table: TableName
    key: Sequence[str]
    image: Sequence[str]
    position: str
    has_lobs: bool

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

    def first_rows(self, copied: DataFrame, events: DataFrame) -> dict[str, DataFrame]:
        """What a copy comes to, as ``CopiedRows`` names it.

        :param copied: rows, each of some moment within the window
        :param events: staged rows of the window, with all before images
        :raises KeyRequiredError: if several rows are left of one key
        :raises CopyUncertainError: if the copy does not tell what was there
        """
        by_image = self._without_target_rows(events)
        self._refuse_several(by_image.where(F.col(_LEFT) > 1))
        number = by_image.where(~F.col(_THROUGH)).select(F.col(_NUMBER).alias("_n"))
        left = events.join(number, "_n", "left_semi")
        stay = self._not_touched(copied, by_image)
        there = stay.select(*self._key()).unionAll(left.select(*self._key()))
        self.refuse_duplicates(there)
        went = by_keys_of(events.where(is_old_image()), there, self.key, "left_anti")
        return {
            "stay": stay,
            "was": self._before_all(events),
            "left": left,
            "gone": went.join(went.groupBy(*self._key()).agg(F.max("_n").alias("_n")), "_n", "left_semi"),
        }

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
        by_transaction = (
            _signed(events)
            .groupBy(*names, self.position)
            .agg(F.sum(_SIGN).alias(_NET), F.min_by(_SIGN, "_n").alias(_SIGN), *_numbers(), F.lit(0).alias(_HELD))
            .withColumn(_THROUGH, (F.col(_NET) == 0) & (F.col(_SIGN) > 0))
            # between two transactions it was there; what only went through was not
            .withColumn(_WENT, F.when(F.col(_NET) < 0, F.col(_WENT)))
            .drop(self.position, _SIGN)
        )
        here = target_rows.select(
            *names,
            F.lit(1).cast("bigint").alias(_NET),
            *(F.lit(None).cast("bigint").alias(name) for name in (_CAME, _WENT)),
            F.lit(1).alias(_HELD),
            F.lit(False).alias(_THROUGH),
        )
        by_image = (
            by_transaction.unionByName(here)
            .groupBy(*names)
            .agg(
                F.greatest(F.sum(_NET), F.lit(0)).alias(_LEFT),
                *(F.max(name).alias(name) for name in (_CAME, _WENT, _HELD, _THROUGH)),
            )
        )
        put = F.when(F.col(_LEFT) > 0, F.col(_CAME))
        by_key = by_image.groupBy(*self._key()).agg(
            F.sum(_LEFT).alias(_LEFT),
            F.max(_WENT).alias(_WENT),
            F.max(put).alias(_CAME),
            F.max(F.col(_THROUGH) & (F.col(_HELD) > 0) & put.isNotNull()).alias(_THROUGH),
        )
        return by_key.withColumn(_NUMBER, F.when(F.col(_LEFT) > 0, F.col(_CAME)).otherwise(F.col(_WENT)))

    def _without_target_rows(self, events: DataFrame) -> DataFrame:
        """Balance events beside rows of which nobody knows whether they are those of before or of after.

        An image that goes before it comes was there at the beginning. Of others only those that went through leave
        that open: the key is unique between transactions. Without an update of the key they were not there either: the
        row that was changed on its way had it.
        """
        names = [*self._key(), *map(column, self.image)]
        so_far = Window.partitionBy(*names).orderBy("_n").rowsBetween(Window.unboundedPreceding, 0)
        rows = _signed(events).withColumns(
            {
                _SUM: F.sum(_SIGN).over(so_far),
                _NET: F.sum(_SIGN).over(Window.partitionBy(*names, self.position)),
            }
        )
        found = rows.groupBy(*names).agg(
            (F.sum(_SIGN) + F.greatest(-F.min(_SUM), F.lit(0))).alias(_LEFT),
            ((F.min(_SUM) >= 0) & ~F.max(F.col(_NET) != 0)).alias(_THROUGH),
            F.max("_key_changed").alias(_MOVED),
            *_numbers(),
        )
        return found.withColumn(_NUMBER, F.when(F.col(_LEFT) > 0, F.col(_CAME)))

    def _before_all(self, events: DataFrame) -> DataFrame:
        """The images that went without having come: they were there before all events."""
        of_image = Window.partitionBy(*self._key(), *map(column, self.image)).orderBy("_n")
        balance = F.sum(_SIGN).over(of_image.rowsBetween(Window.unboundedPreceding, 0))
        least = F.min(_SUM).over(of_image.rowsBetween(Window.unboundedPreceding, -1))
        rows = _signed(events).withColumn(_SUM, balance).withColumn(_LEAST, F.least(F.lit(0), least))
        return rows.where(F.col(_SUM) < F.col(_LEAST)).drop(_SIGN, _SUM, _LEAST)

    def _not_touched(self, copied: DataFrame, by_image: DataFrame) -> DataFrame:
        """The copied rows that the events leave as they are, those that went through among them."""
        names = (*self.key, *self.image)
        through = by_image.where(_THROUGH)
        there = by_keys_of(copied, through, names, "left_semi")
        missing = by_keys_of(through.where(_MOVED), copied, names, "left_anti")
        # a scan that meets rows on the move may miss one, or meet it twice; LOBs tell rows apart that look the same
        if not missing.isEmpty() or (self.has_lobs and not there.isEmpty()):
            raise CopyUncertainError(
                "rows passed keys on while the table was copied, so that the copy does not tell which one is left.",
                table=str(self.table),
                advice="Run the task again.",
            )
        untouched = by_keys_of(copied, by_image, names, "left_anti")
        return untouched.unionAll(there.dropDuplicates(list(names)))

    def _key(self) -> list[Column]:
        return [column(name) for name in self.key]

    def _examples(self, rows: Sequence[Row]) -> str:
        return "; ".join(", ".join(f"{name}={row[name]!r}" for name in self.key) for row in rows)

    def _refuse(self, by_key: DataFrame) -> None:
        """Refuse keys of which several rows are left, and those of which it is not sure which one is."""
        several = F.col(_LEFT) > 1
        bad = by_key.where(several | F.col(_THROUGH) if self.has_lobs else several)
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


def _numbers() -> list[Column]:
    """The last number of an image that came, and of one that went."""
    return [
        F.max(F.when(F.col(_SIGN) > 0, F.col("_n"))).alias(_CAME),
        F.max(F.when(F.col(_SIGN) < 0, F.col("_n"))).alias(_WENT),
    ]
