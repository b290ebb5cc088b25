"""A target format of a test's own: a whole table as lines of JSON, a folder for each commit, the newest one counts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.formats import TargetFormat
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, is_delete
from airflow_provider_mssql_cdc.spark.targets import Difference, OldRows, Opening, State, Write

LINES = TargetFormat(
    "lines",
    (re.compile(r"lines\+(?P<folder>file://[^?#]*[^/?#])/*"),),
    ("lines+file:///folder",),
    f"{__name__}:LinesTable.opened",
    what="lines of JSON",
    is_made_with=False,
)


class LinesTable:
    """A sink's table: ``<number>/rows`` and ``<number>.json``, which names the columns, and the marker or none."""

    def __init__(self, opening: Opening) -> None:
        folder, self._table = opening.name
        self._session, self._folder = opening.session, Path(folder.removeprefix("file://")) / self._table

    @classmethod
    def opened(cls, opening: Opening) -> LinesTable:
        return cls(opening)

    @property
    def name(self) -> str:
        return str(self._folder)

    def check_place(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def create(self, columns: Sequence[TargetColumn]) -> None:
        if self._number() is None:
            self.check_place()
            self._make(0, {"columns": {column.name: column.type for column in columns}, "marker": None})

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        expected, found = {column.name: column.type for column in columns}, self._said()["columns"]
        return None if expected == found else Difference(expected, found)

    def expect(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: it gets no columns."""

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: it gets no columns."""

    def rename(self, columns: Mapping[str, str]) -> None:
        raise NotImplementedError

    def drop(self, columns: Sequence[str]) -> None:
        raise NotImplementedError

    def keep_schema(self, schema: KeptSchema) -> bool:
        return False

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        return None

    def state(self) -> State:
        number = self._number()
        if number is None:
            return State(False, None, None, is_empty=True)
        marker = self._said()["marker"]
        return State(True, number, marker and from_json(Marker, marker), self._rows(number).isEmpty())

    def rows(self, state: State) -> DataFrame:
        return self._rows(state.snapshot or 0)

    def rows_of(self, state: State, keys: Callable[[], DataFrame | None]) -> DataFrame:
        return self.rows(state)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        number, said = (state.snapshot or 0) + 1, self._said()
        kept = self._rows(number - 1)
        if write.old is OldRows.ALL:
            kept = kept.limit(0)
        elif write.old is OldRows.OF_KEY:
            kept = by_keys_of(kept, write.rows, write.key, "left_anti")
        put = write.rows.where(~is_delete()) if write.old is OldRows.OF_KEY else write.rows
        rows = kept.unionByName(put.select(*kept.columns))
        rows.write.json(str(self._folder / str(number) / "rows"), ignoreNullFields=False)
        return self._make(number, {**said, "marker": marker and to_json(marker)})

    def drop_leftovers(self) -> None:
        """Nothing is left over but folders without a file that names them."""

    def changed_by(self) -> str:
        return "another commit"

    def _number(self) -> int | None:
        return max((int(file.stem) for file in self._folder.glob("*.json")), default=None)

    def _said(self) -> dict:
        return json.loads((self._folder / f"{self._number() or 0}.json").read_text())

    def _rows(self, number: int) -> DataFrame:
        schema = ", ".join(f"`{name}` {type_}" for name, type_ in self._said()["columns"].items())
        rows = self._folder / str(number) / "rows"
        if not rows.exists():
            return self._session.createDataFrame([], schema)
        return self._session.read.schema(schema).json(str(rows))

    def _make(self, number: int, said: dict) -> bool:
        """Make the file of a commit, which only one writer can."""
        own = self._folder / f".{number}-{os.urandom(4).hex()}"
        own.write_text(json.dumps(said))
        try:
            os.link(own, self._folder / f"{number}.json")
        except FileExistsError:
            return False
        finally:
            own.unlink()
        return True
