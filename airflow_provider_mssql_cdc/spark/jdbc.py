"""The source database over JDBC: the rows of queries, as frames or at once."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession

from airflow_provider_mssql_cdc.core.spec import SourceSpec
from airflow_provider_mssql_cdc.spark.deadlocks import read_again

log = logging.getLogger(__name__)

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
    """

    def __init__(
        self, session: SparkSession, spec: SourceSpec, credentials: Credentials, fetch_size: int = 10_000
    ) -> None:
        self.session = session
        self._spec, self._credentials, self._fetch_size = spec, credentials, fetch_size

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
        return (
            self.session.read.format("jdbc")
            .options(**options)
            .option("url", self._spec.jdbc_url)
            .option("driver", _DRIVER)
            .option("fetchsize", self._fetch_size)
            # the server compares texts by its collations, and Spark would not judge again
            .option("pushDownPredicate", "false")
            .option("dbtable", f"({query}) q")
            .option("customSchema", schema)
            .load()
        )

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
