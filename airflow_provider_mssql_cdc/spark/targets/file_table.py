"""What a table in files is opened with, whatever its format."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Self

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.schema import KeptSchema, from_properties, properties
from airflow_provider_mssql_cdc.core.target import display_name
from airflow_provider_mssql_cdc.spark.targets import Opening, State
from airflow_provider_mssql_cdc.spark.targets.sql import drop, rename, text, widen, with_names

log = logging.getLogger(__name__)


class FileTable:
    """A sink's table in files.

    :param session: the table's own session, since commits take what they say of themselves from its settings
    :param name: catalog, namespace, table; or the URL of a folder, and the table in it
    :param spec_id: of the job
    :param partition_by: Spark SQL partition expressions, used if the table is created
    :param properties: table properties, used if the table is created
    """

    _DEFAULT_PROPERTIES: ClassVar[Mapping[str, str]] = {}

    _renamed: Mapping[str, str] = MappingProxyType({})
    """What columns are called that have got other names since the job began; by the name of then."""

    def __init__(
        self,
        session: SparkSession,
        name: Sequence[str],
        spec_id: str,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._session, self._name, self._spec_id = session, tuple(name), spec_id
        self._partition_by, self._properties = partition_by, {**self._DEFAULT_PROPERTIES, **(properties or {})}
        self._open()

    @classmethod
    def opened(cls, opening: Opening) -> Self:
        """The table of a sink."""
        sink = opening.sink
        return cls(
            opening.session, opening.name, opening.job.id, partition_by=sink.partition_by, properties=sink.properties
        )

    @property
    def name(self) -> str:
        """The name for people."""
        return display_name(self._name)

    def expect(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: columns come with the commit itself."""

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: columns come with the commit itself."""

    def _open(self) -> None:
        """What a format does first."""

    def _renames(self, has: Collection[str]) -> dict[str, str]:
        """The columns that have other names than these rows say.

        :param has: the columns of the rows, of which another run may have renamed some
        """
        left = {old: new for old, new in self._renamed.items() if old in has}
        # a name may be that of a column which gives it away
        return {old: new for old, new in left.items() if new not in has or (left.get(new) not in (None, *has))}

    def _note(self, columns: Mapping[str, str]) -> None:
        """Note columns that get other names, or get theirs back."""
        undone = {new: old for old, new in columns.items() if self._renamed.get(new) == old}
        anew = {old: new for old, new in columns.items() if new not in undone}
        self._renamed = {**{old: new for old, new in self._renamed.items() if old not in undone}, **anew}


class LakeTable(FileTable, abc.ABC):
    """A sink's table that Spark SQL knows, with properties."""

    @property
    @abc.abstractmethod
    def sql_name(self) -> str:
        """The name in Spark SQL."""

    @abc.abstractmethod
    def exists(self) -> bool:
        """Whether the table exists."""

    @abc.abstractmethod
    def rows(self, state: State) -> DataFrame:
        """The rows that the table held then."""

    def rows_of(self, state: State, keys: Callable[[], DataFrame | None]) -> DataFrame:
        """All of them: files have no index, and Spark joins what it looks up where they are read."""
        return self.rows(state)

    def widen(self, columns: Sequence[TargetColumn]) -> None:
        """Alter the columns, one after the other: no value changes by it."""
        widen(self._session, self.sql_name, columns, self.name)

    def rename(self, columns: Mapping[str, str]) -> None:
        """Rename the columns, one after the other."""
        rename(self._session, self.sql_name, columns, self.name)
        self._note(columns)

    def drop(self, columns: Sequence[str]) -> None:
        """Drop the columns at once: what was committed before has them in its own versions alone."""
        drop(self._session, self.sql_name, columns, self.name)

    def named(self, rows: DataFrame) -> DataFrame:
        """Rows of the table as it was before columns were renamed here, with the names that these have now."""
        return with_names(rows, self._renames(rows.columns))

    def keep_schema(self, schema: KeptSchema) -> bool:
        """Keep a schema in the table's properties, which it gets now or when it is made."""
        kept = properties(schema)
        if not self.exists():
            self._properties = {**self._properties, **kept}
            return True
        said = ", ".join(f"{text(name)} = {text(value)}" for name, value in kept.items())
        try:
            self._session.sql(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ({said})")
        except Exception as error:
            # The next load tries again. What Java throws is not always a PySparkException, for instance where two jobs
            # change a table's properties at once.
            log.warning("the schema was not written into the properties of %s: %s", self.name, error)
            return False
        return True

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that the table's properties keep."""
        found = self._session.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect()
        return from_properties(hash_, {row["key"]: row["value"] for row in found})
