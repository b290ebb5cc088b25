"""What the errors of Spark, its JDBC driver and Java say, without their stack traces, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLagError,
    CdcPermissionError,
    ConnectionSettingError,
    DatabaseUnavailableError,
    InstanceChangedError,
    LoginError,
    MsSqlCdcError,
    ServerUnreachableError,
    SqlServerError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.receipt import JobError
from airflow_provider_mssql_cdc.core.table import quote
from airflow_provider_mssql_cdc.spark.ended_reads import DDL_MEANWHILE, VICTIM
from airflow_provider_mssql_cdc.spark.jdbc import LAGS

_LONGEST = 2000

_CALL = re.compile(r"\AAn error occurred while calling \S+\.\s*: ")
_TASK = re.compile(r"Job aborted due to stage failure: .*? \(TID \d+\) \([^()]*\): ", re.DOTALL)
_JAVA_CLASS = re.compile(r"\A(?:[a-z]\w*\.)+([A-Z]\w*(?:\$\w+)*)(: |\Z)")
_TRACE = re.compile(r"\n\s+(?:at |\.\.\. \d+ more)|\n\s*Driver stacktrace:|\n\s*(?:Caused by|Suppressed): ")
_CAUSE = re.compile(r"\nCaused by: (.+)")
_SQL_SERVER = re.compile(r"com\.microsoft\.sqlserver\.jdbc\.SQLServerException: ")
_CONNECTION_ID = re.compile(r"\s*ClientConnectionId:[0-9a-fA-F-]{36}")
_HOW_TO_CONNECT = re.compile(r"\. Verify the connection properties\..*", re.DOTALL)
_DISK_FULL = "No space left on device"
_NO_DRIVER = re.compile(r"ClassNotFoundException: com\.microsoft\.sqlserver\.\S+|No suitable driver")
# Spark takes the name of a catalog that it does not know for a level of its own catalog's namespaces.
_NO_CATALOG = re.compile(
    r"\[REQUIRES_SINGLE_PART_NAMESPACE\] \S+ requires a single-part namespace, but got `?(?P<level>\w+)"
    r"|\[CATALOG_NOT_FOUND\] The catalog `?(?P<name>\w+)"
)
_NO_CATALOG_CLASS = re.compile(r"Cannot find catalog plugin class for catalog '(?P<name>\w+)': (?P<of>[\w.$]*\w)")


@dataclass(frozen=True, slots=True)
class _Known:
    """A message of SQL Server or its driver.

    :param text: what the message holds; the driver hands on no number, and messages are in the login's language
    :param number: SQL Server's; None for the driver's own
    :param advice: may name groups of ``text``, and ``{login}``
    """

    text: re.Pattern[str]
    number: int | None
    kind: type[MsSqlCdcError]
    advice: str


def _known(text: str, number: int | None, kind: type[MsSqlCdcError], advice: str) -> _Known:
    return _Known(re.compile(text, re.DOTALL), number, kind, advice)


_KNOWN = (
    _known(
        r"Cannot open database ",
        4060,
        DatabaseUnavailableError,
        "Check the connection's schema field (the database), and that {login} has a user in it.",
    ),
    _known(r"Login failed for user ", 18456, LoginError, "Check login and password of the Airflow connection."),
    _known(
        r"permission was denied on the (?:object|column) .*"
        r", database '(?P<database>[^']*)', schema '(?P<schema>[^']*)'",
        229,
        CdcPermissionError,
        "Run in [{database}]: GRANT SELECT ON SCHEMA::[{schema}] TO {login};",
    ),
    _known(
        r"Invalid object name ",
        208,
        InstanceChangedError,
        "It was dropped, or CDC was disabled, since the run was planned, or {login} may no longer see it. Run the task "
        "again: it is planned anew.",
    ),
    _known(
        r"Invalid column name ",
        207,
        InstanceChangedError,
        "The table was changed since the run was planned. Run the task again: it is planned anew.",
    ),
    _known(
        r"Lock request time out period exceeded",
        1222,
        SqlServerError,
        "Another session holds a lock on the table; sys.dm_tran_locks names it. Run the task again.",
    ),
    _known(
        LAGS,
        50000,
        CaptureLagError,
        "A readable secondary may lag behind: run the task again, or read from the primary (ApplicationIntent).",
    ),
    _known(VICTIM, 1205, SqlServerError, "Run the task again."),
    _known(DDL_MEANWHILE, 3961, SqlServerError, "The table, or an index of it, is altered all the time: run it again."),
    _known(
        r"is currently not accessible for queries|is not enabled for read access",
        976,
        DatabaseUnavailableError,
        "It is a secondary that does not accept reads: check ApplicationIntent and the host of the connection.",
    ),
    _known(
        r"could not establish a secure connection",
        None,
        ConnectionSettingError,
        "Check encrypt, trustServerCertificate and hostNameInCertificate in the connection's extra field; the "
        "certificate's authority must be known to the Java of every executor.",
    ),
    _known(
        r"The TCP/IP connection to the host \S+, port \d+ has failed|Connection reset|connection is closed"
        r"|did not return a response|timed out",
        None,
        ServerUnreachableError,
        "Check host, port and firewall from where Spark runs: the driver and every executor connect.",
    ),
)


def explain(text: str, kind: str, table: str, login: str | None, writing: str | None = None) -> JobError:
    """What a receipt says of a failure that is not of this package.

    :param text: of the exception and those that caused it, without secrets
    :param kind: class name of the exception
    :param table: the source table concerned
    :param login: of the connection; None where another way to authenticate is used
    :param writing: the target table that was written to; None where rows were staged
    """
    if found := _SQL_SERVER.search(text):
        return _of_sql_server(_head(text[found.end() :]), table, login)
    if _DISK_FULL in text:
        return JobError(
            "IOException",
            f"{table}: {_DISK_FULL}: {_plain(text)} Make room where "
            + (f"{writing} lies" if writing else "staged rows lie (work_dir)")
            + " and on the local disks of Spark (spark.local.dir).",
            False,
        )
    if _NO_DRIVER.search(text):
        return JobError(
            "ClassNotFoundException",
            f"{table}: Spark has no JDBC driver for SQL Server: {_plain(text)} Leave packages= as it is, or put "
            "com.microsoft.sqlserver:mssql-jdbc on the class path of driver and executors.",
            True,
        )
    if found := _NO_CATALOG.search(text):
        return _no_catalog(found["level"] or found["name"], table)
    if found := _NO_CATALOG_CLASS.search(text):
        return JobError(
            TargetError.__name__,
            f"{table}: Spark has no class {found['of']}, of which catalog {found['name']} is to be. Check conf "
            f"spark.sql.catalog.{found['name']}, and leave packages= as it is, or put "
            "org.apache.iceberg:iceberg-spark-runtime on the class path of driver and executors.",
            TargetError.permanent,
        )
    java = _JAVA_CLASS.search(_head(_CALL.sub("", text)))
    kind = java[1] if java else kind
    return JobError(kind, f"{table}: {_plain(text) or kind + '.'}", False)


def _no_catalog(name: str, table: str) -> JobError:
    return JobError(
        TargetError.__name__,
        f"{table}: catalog {name} is not configured in Spark. For Iceberg set conf "
        f"spark.sql.catalog.{name}=org.apache.iceberg.spark.SparkCatalog, and what it needs: "
        f"spark.sql.catalog.{name}.type, and .warehouse or .uri. Delta's own catalog "
        "works under the name spark_catalog alone: load into delta://spark_catalog/.., or into a folder.",
        TargetError.permanent,
    )


def _of_sql_server(message: str, table: str, login: str | None) -> JobError:
    text = _HOW_TO_CONNECT.sub('."', _CONNECTION_ID.sub("", message)).strip()
    for known in _KNOWN:
        if found := known.text.search(text):
            names = {name: value.replace("]", "]]") for name, value in found.groupdict().items()}
            advice = known.advice.format(login=quote(login) if login else "the login", **names)
            which = f"SQL Server error {known.number}: " if known.number else ""
            return JobError(known.kind.__name__, f"{table}: {which}{_sentence(text)} {advice}", known.kind.permanent)
    return JobError(SqlServerError.__name__, f"{table}: SQL Server: {_sentence(text)}", SqlServerError.permanent)


def _plain(text: str) -> str:
    """The message and the deepest cause, without the calls that led there."""
    message = _without_class(_TASK.sub("", _without_class(_head(_CALL.sub("", text)))))
    causes = _CAUSE.findall(text)
    cause = _without_class(causes[-1].strip()) if causes else ""
    return _sentence(message if not cause or cause in message else f"{message} Cause: {cause}")


def _head(text: str) -> str:
    """What comes before the stack trace."""
    return _TRACE.split(text, maxsplit=1)[0].strip()


def _without_class(message: str) -> str:
    java = _JAVA_CLASS.search(message)
    return message[java.end() :] if java and java[2] else message


def _sentence(text: str) -> str:
    text = " ".join(text.split())[:_LONGEST]
    return text if not text or text.endswith((".", "!", "?", '"')) else f"{text}."
