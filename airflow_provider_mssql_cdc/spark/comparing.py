"""Compares the loaded sinks of a table with a copy that a person asks for, and has what differs written."""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.choice import conditions_of
from airflow_provider_mssql_cdc.core.copy_wanted import ASKED_COPY, AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import CopyRefusedError, LostValueError
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.decide import SAME_AGAIN, check_comparable
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.sink import Sink


class Comparing:
    """One asked copy of a table, in this run.

    :param rows: of all sinks of the table
    :param sink: makes the sink of rows
    :param load_up_to: loads the changes up to a copy's end into some sinks; whether all are there
    :param load: loads some sinks as they stand now
    :param place: folder for what differs; must not exist yet
    """

    def __init__(
        self,
        table: TableSpec,
        rows: Sequence[SinkRows],
        notes: Notes,
        reading: Reading,
        sink: Callable[[SinkRows], Sink],
        load_up_to: Callable[[Copy, Sequence[SinkRows]], bool],
        load: Callable[[Sequence[SinkRows]], None],
        place: str,
    ) -> None:
        self._table, self._all, self._notes, self._reading = table, rows, notes, reading
        self._sink, self._load_up_to, self._load, self._place = sink, load_up_to, load, place
        self._compared: set[str] = set()

    def run(self, asked: AskedCopy, time: CopyTime) -> bool:
        """Write what differs in the sinks that are loaded, at the end of a copy. What fails is that alone.

        :param time: of the run for copies
        :return: whether all have it
        """
        comparable = [each for each in self._all if each.is_comparable]
        for each in self._all:
            if not each.is_comparable:
                self._notes.warn(f"{each.sink.name} takes no copy: it holds changes alone, or not all of them")
        # one for what begins with a copy comes first
        under_way = self._notes.copying is not None
        if not comparable and not under_way:
            self._notes.ended_copy = f"{asked.id} ABORTED: no shape of the table takes a copy"
        # a copy may tell what the target should hold, and does not
        mends = not asked.where
        lost = {shape: why for shape, why in self._notes.failed.items() if mends and isinstance(why[0], LostValueError)}
        for shape in lost:
            del self._notes.failed[shape]
        rows, done = [each for each in comparable if each.sink.shape in {*self._notes.done, *lost}], False
        if not under_way:
            with self._notes.alone(ASKED_COPY):
                done = self._compare_left(rows, asked, time)
                if done and (others := [each for each in rows if each.sink.shape not in self._notes.done]):
                    # another run has mended them
                    self._load(others)
        self._wait(lost)
        if not under_way and any(isinstance(error, SAME_AGAIN) for error, _ in self._notes.failed.values()):
            self._reading.remove_copy()
        errors = [error for error, _ in self._notes.failed.values()]
        if asked.where and not (rows or under_way) and errors and all(isinstance(e, LostValueError) for e in errors):
            # it would wait for a copy of all rows
            self._notes.ended_copy = f"{asked.id} ABORTED: {errors[0]}"
        if not (done and len(rows) == len(comparable) > 0):
            return False
        self._notes.ended_copy = f"{asked.id} COMPLETED"
        return True

    def _wait(self, lost: Mapping[str, tuple[Exception, str | None]]) -> None:
        """Let what only a copy mends wait for the one that is under way; without such one it has failed."""
        left = {shape: why for shape, why in lost.items() if shape not in self._notes.done}
        if (copying := self._notes.copying) is None:
            self._notes.failed = {**left, **self._notes.failed}
            return
        shapes, mends = tuple(dict.fromkeys((*copying.shapes, *left))), {s: str(why[0]) for s, why in left.items()}
        self._notes.copying = dataclasses.replace(copying, shapes=shapes, mends=mends)
        for shape, why in left.items():
            self._notes.warn(f"{shape} waits for the copy: {why[0]}")

    def _compare_left(self, rows: Sequence[SinkRows], asked: AskedCopy, time: CopyTime) -> bool:
        """Compare those sinks that do not have the copy yet; whether none is left."""
        left = self._without_copy(rows, asked)
        while left:
            try:
                return self._compare_all(left, asked, time)
            except Exception:
                # another run may have compared some of them, and removed the folder with the last one
                now = self._without_copy(rows, asked)
                by_others = {each.sink.shape for each in left if each not in now} - self._compared
                if not by_others:
                    raise
                self._notes.writing = None
                self._reading.has_lost_copy()
                left = now
        return True

    def _without_copy(self, rows: Sequence[SinkRows], asked: AskedCopy) -> list[SinkRows]:
        return [each for each in rows if not self._sink(each).has_copy(asked.id)]

    def _compare_all(self, left: Sequence[SinkRows], asked: AskedCopy, time: CopyTime) -> bool:
        """Copy, and compare some sinks with that; whether that came to its end."""
        check_comparable(self._table)
        shapes = tuple(each.sink.shape for each in left)
        time.begin()
        # what has just begun with a copy left it here
        conditions = conditions_of(self._table.name, self._table.schema, json.loads(asked.where or "[]"))
        if dropped := sorted({condition.column for condition in conditions} & set(self._table.schema.kept)):
            raise CopyRefusedError(
                f"the source table has dropped {', '.join(dropped)}, by which the copy is to find rows.",
                table=str(self._table.name),
                advice="Ask by columns that the table has.",
            )
        as_text = {column.name for column in self._table.schema.columns if column.as_text}
        if judged := sorted({condition.column for condition in conditions} & as_text):
            raise CopyRefusedError(
                f"targets hold {', '.join(judged)} as text, by which the copy is to find rows.",
                table=str(self._table.name),
                advice="Ask by other columns.",
            )
        if conditions and not self._table.unique_key:
            raise CopyRefusedError(
                "a copy of some rows does not tell which row has a key that the server does not enforce.",
                table=str(self._table.name),
                advice="Ask for a copy of all rows: without a condition.",
            )
        unfinished = None
        if self._reading.copy is None:
            loaded = [self._notes.done[shape].read_through for shape in shapes if shape in self._notes.done]
            beside = min(loaded, default=None)
            unfinished = self._reading.take_copy(time, None, conditions, beside=beside)
        copy = self._reading.copy
        found = unfinished or copy
        for text in found.warnings if found is not None else ():
            self._notes.warn(text)
        if unfinished is None and copy is not None:
            if not self._load_up_to(copy, left):
                return False
            if copy.conditions and (suspects := self._suspects(copy, left)) is not None:
                unfinished = self._reading.read_again(suspects)
                copy = self._reading.copy
        if unfinished is not None:
            self._notes.copying = dataclasses.replace(unfinished.receipt, shapes=shapes)
            return False
        assert copy is not None
        if copy.again is not None and not self._load_up_to(copy, left):
            return False
        for each in left:
            sink = self._sink(each)
            if (reached := self._notes.done[sink.shape].read_through) != copy.high:
                raise sink.conflict(f"loaded to {reached}, beside a copy to {copy.high}")
            with self._notes.timed("compare"), self._notes.writes(sink.target.name):
                folder = f"{self._place}/{sink.shape}-{secrets.token_hex(4)}"
                done, said = sink.compare(copy, asked.id, self._reading, folder)
            self._compared.add(sink.shape)
            self._notes.note(done)
            self._notes.warn(said)
        return True

    def _suspects(self, copy: Copy, left: Sequence[SinkRows]) -> DataFrame | None:
        """The keys to be read again, since a copy by conditions does not tell whether they are gone; None for none."""
        found = []
        for each in left:
            sink = self._sink(each)
            if (keys := sink.suspects(copy)) is not None:
                found.append(keys)
            else:
                self._notes.warn(f"{sink.spec.name} hides columns of the condition: rows that are gone stay there")
        keys = reduce(DataFrame.unionAll, found).distinct() if found else None
        return keys if keys is not None and not keys.isEmpty() else None
