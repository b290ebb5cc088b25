"""The source database over JDBC: the rows of queries, as frames or at once."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession

from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.spec import SourceSpec
from airflow_provider_mssql_cdc.core.table import lsn_literal
from airflow_provider_mssql_cdc.spark.ended_reads import read_again

log = logging.getLogger(__name__)

SNAPSHOT = "SNAPSHOT"
"""The isolation level in which each statement reads what was committed when it began."""

LAGS = "the server does not show"
"""Begins the message of a server that lags behind another one."""

_DRIVER = "com.microsoft.sqlserver.jdbc.SQLServerDriver"


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password; shown nowhere.

    :param user: None where the connection properties bring another way to authenticate
    """

    user: str | None = field(repr=False)
    password: str | None = field(repr=False)

    def scrub(self, text: str) -> str:
        """The text without the password. The user's name is no secret, and may be a part of any word."""
        return text.replace(self.password, "***") if self.password else text


class Jdbc:
    """One table's way to the source database.

    :param session: the table's own session
    :param credentials: of the login
    :param fetch_size: rows per round trip
    :param proof: a statement with which each connection begins; what it raises, the read raises
    :param isolation: level of its connections, as mssql-jdbc names it; None is the driver's own
    """

    def __init__(
        self,
        session: SparkSession,
        spec: SourceSpec,
        credentials: Credentials,
        fetch_size: int = 10_000,
        proof: str | None = None,
        isolation: str | None = None,
    ) -> None:
        self.session = session
        self._spec, self._credentials, self._fetch_size = spec, credentials, fetch_size
        self._proof, self._isolation = proof, isolation

    def showing(self, low: Position, *, by_snapshots: bool = False) -> Jdbc:
        """The same way, where each connection proves before its first row that its own server shows a position.

        A readable secondary may lag behind the server that named it: rows of before the position would be missing.

        :param by_snapshots: whether each statement reads one moment (SNAPSHOT)
        """
        if not isinstance(low, Lsn):
            return self
        proof = (
            f"IF NOT EXISTS (SELECT * FROM cdc.lsn_time_mapping WHERE start_lsn >= {lsn_literal(low)})"
            f" THROW 50000, N'{LAGS} {low}, with which the copy begins', 1"
        )
        isolation = SNAPSHOT if by_snapshots else None
        return Jdbc(self.session, self._spec, self._credentials, self._fetch_size, proof, isolation)

    def by_snapshots(self) -> Jdbc:
        """The same way, where each statement reads one moment (SNAPSHOT)."""
        return Jdbc(self.session, self._spec, self._credentials, self._fetch_size, self._proof, SNAPSHOT)

    def frame(self, query: str, schema: str) -> DataFrame:
        """The rows of a query, read by one connection when the frame is used.

        :param query: T-SQL without ORDER BY or WITH, since Spark makes it a derived table
        :param schema: Spark DDL of the columns, which overrides what the driver says of their types
        """
        options = {"applicationName": "airflow-provider-mssql-cdc", **self._spec.options}
        if self._credentials.user is not None:
            options["user"] = self._credentials.user
        if self._credentials.password is not None:
            options["password"] = self._credentials.password
        if self._isolation is not None:
            # a SET of the proof would end with it, as it is sent as a prepared statement (docs: SET statements)
            options["defaultTransactionIsolation"] = self._isolation
        if self._proof is not None:
            options["sessionInitStatement"] = self._proof
        reader = (
            self.session.read.format("jdbc")
            .options(**options)
            .option("url", self._spec.jdbc_url)
            .option("driver", _DRIVER)
            .option("fetchsize", self._fetch_size)
            # the server compares texts by its collations, and Spark would not judge again
            .option("pushDownPredicate", "false")
            .option("dbtable", f"({query}) q")
            .option("customSchema", schema)
        )
        # Spark asks for the query's columns here
        return read_again(lambda number: reader.load())

    def rows(self, query: str, schema: str) -> list[Row]:
        """The rows of a small query."""
        return read_again(lambda number: self.frame(query, schema).collect())

    def rows_if_allowed(self, query: str, schema: str) -> list[Row]:
        """The rows of a query that a login may not be allowed, or a version not know; none where it fails."""
        try:
            return self.rows(query, schema)
        except Exception as error:
            # the text is in the server's language, so that it does not tell a missing right from another failure
            log.info("not known: %s", self._credentials.scrub(str(error)).partition("\n\tat ")[0])
            return []
