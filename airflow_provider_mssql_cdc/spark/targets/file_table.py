"""What a table in files is opened with, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.target import display_name


class FileTable:
    """A sink's table in files.

    :param session: the table's own session, since commits take what they say of themselves from its settings
    :param name: catalog, namespace, table; or the URL of a folder, and the table in it
    :param spec_id: of the job
    :param partition_by: Spark SQL partition expressions, used if the table is created
    :param properties: table properties, used if the table is created
    """

    _DEFAULT_PROPERTIES: ClassVar[Mapping[str, str]] = {}

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

    @property
    def name(self) -> str:
        """The name for people."""
        return display_name(self._name)

    def _open(self) -> None:
        """What a format does first."""
