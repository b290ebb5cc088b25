"""What a receipt says of failures that Spark, the JDBC driver and Java report: texts as they report them."""

import pytest

from airflow_provider_mssql_cdc.core import exceptions
from airflow_provider_mssql_cdc.spark.failures import explain

SQL_SERVER = "com.microsoft.sqlserver.jdbc.SQLServerException"
TRACE = (
    "\n\tat com.microsoft.sqlserver.jdbc.SQLServerException.makeFromDatabaseError(SQLServerException.java:404)"
    "\n\tat org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD$.resolveTable(JDBCRDD.scala:74)"
)
ID = " ClientConnectionId:d7b617a7-21a8-4038-8ee2-f5c591ce16a5"


def in_driver(message):
    """What py4j raises if a call fails on the driver."""
    return f"An error occurred while calling o54.load.\n: {SQL_SERVER}: {message}{TRACE}"


def in_task(message, of=SQL_SERVER):
    """What py4j raises if a task fails."""
    return (
        "An error occurred while calling o215.parquet.\n: org.apache.spark.SparkException: Job aborted due to stage "
        "failure: Task 1 in stage 2.0 failed 4 times, most recent failure: Lost task 1.3 in stage 2.0 (TID 3) "
        f"(10.0.0.7 executor 2): {of}: {message}{TRACE}\n\nDriver stacktrace:{TRACE}\n"
        f"Caused by: {of}: {message}{TRACE}\n"
    )


UNREACHABLE = (
    'The TCP/IP connection to the host db, port 1433 has failed. Error: "Connection refused. Verify the connection '
    "properties. Make sure that an instance of SQL Server is running on the host and accepting TCP/IP connections at "
    'the port. Make sure that TCP connections to the port are not blocked by a firewall.".'
)
TLS = (
    '"encrypt" property is set to "true" and "trustServerCertificate" property is set to "false" but the driver could '
    "not establish a secure connection to SQL Server by using Secure Sockets Layer (SSL) encryption: Error: PKIX path "
    "building failed: sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification "
    "path to requested target." + ID
)
DISK = (
    "An error occurred while calling o39.parquet.\n: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed "
    "while writing rows to file:/data/x. SQLSTATE: 58030\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$"
    ".taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:814)\n\tSuppressed: org.apache.spark.util.Utils"
    "$OriginalTryStackTraceException: Full stacktrace of original doTryWithCallerStacktrace caller\n\t\t... 18 more\n"
    "Caused by: org.apache.parquet.util.AutoCloseables$ParquetCloseResourceException: Unable to close resource\n\t... "
    "1 more\nCaused by: java.io.IOException: No space left on device\n\t... 43 more\n"
)
NOT_CONFIGURED = (
    "catalog LAKE is not configured in Spark. For Iceberg set conf "
    "spark.sql.catalog.LAKE=org.apache.iceberg.spark.SparkCatalog, and what it needs: spark.sql.catalog.LAKE.type, and "
    ".warehouse or .uri. Delta's own catalog works under the name spark_catalog alone: load into "
    "delta://spark_catalog/.., or into a folder."
)
MKDIRS = "Mkdirs failed to create file:/nowhere/x (exists=false, cwd=file:/tmp)"
DENIED = "The SELECT permission was denied on the object 'dbo_t_CT', database 'sh]op', schema 'cdc'."
DDL = (
    "Snapshot isolation transaction failed in database 'shop' because the object accessed by the statement has been "
    "modified by a DDL statement in another concurrent transaction since the start of this transaction."
)
VICTIM = (
    "Transaction (Process ID 54) was deadlocked on lock resources with another process and has been chosen as the "
    "deadlock victim. Rerun the transaction."
)
SECONDARY = (
    "The target database, 'shop', is participating in an availability group and is currently not accessible for "
    "queries."
)


@pytest.mark.parametrize("wrapped", [in_driver, in_task])
@pytest.mark.parametrize(
    ("message", "kind", "said"),
    [
        (
            f"Login failed for user 'lo'.{ID}",
            "LoginError",
            "SQL Server error 18456: Login failed for user 'lo'. Check login and password of the Airflow connection.",
        ),
        (
            f'Cannot open database "shop" requested by the login. The login failed.{ID}',
            "DatabaseUnavailableError",
            'SQL Server error 4060: Cannot open database "shop" requested by the login. The login failed. Check the '
            "connection's schema field (the database), and that [lo] has a user in it.",
        ),
        (
            DENIED,
            "CdcPermissionError",
            f"SQL Server error 229: {DENIED} Run in [sh]]op]: GRANT SELECT ON SCHEMA::[cdc] TO [lo];",
        ),
        (
            "Invalid object name 'cdc.dbo_t_CT'.",
            "InstanceChangedError",
            "SQL Server error 208: Invalid object name 'cdc.dbo_t_CT'. It was dropped, or CDC was disabled, since the "
            "run was planned, or [lo] may no longer see it. Run the task again: it is planned anew.",
        ),
        (
            "Invalid column name 'note'.",
            "InstanceChangedError",
            "SQL Server error 207: Invalid column name 'note'. The table was changed since the run was planned. Run "
            "the task again: it is planned anew.",
        ),
        (
            "Lock request time out period exceeded.",
            "SqlServerError",
            "SQL Server error 1222: Lock request time out period exceeded. Another session holds a lock on the table; "
            "sys.dm_tran_locks names it. Run the task again.",
        ),
        (VICTIM, "SqlServerError", f"SQL Server error 1205: {VICTIM} Run the task again."),
        (
            DDL,
            "SqlServerError",
            f"SQL Server error 3961: {DDL} The table, or an index of it, is altered all the time: run it again.",
        ),
        (
            SECONDARY,
            "DatabaseUnavailableError",
            f"SQL Server error 976: {SECONDARY} It is a secondary that does not accept reads: check ApplicationIntent "
            "and the host of the connection.",
        ),
        (
            UNREACHABLE,
            "ServerUnreachableError",
            'The TCP/IP connection to the host db, port 1433 has failed. Error: "Connection refused." Check host, port '
            "and firewall from where Spark runs: the driver and every executor connect.",
        ),
        (
            "Connection reset",
            "ServerUnreachableError",
            "Connection reset. Check host, port and firewall from where Spark runs: the driver and every executor "
            "connect.",
        ),
        (
            "Conversion failed when converting the varchar value 'x'\nto data type int.",
            "SqlServerError",
            "SQL Server: Conversion failed when converting the varchar value 'x' to data type int.",
        ),
    ],
)
def test_what_sql_server_said_is_told_without_what_lay_around_it(wrapped, message, kind, said):
    found = explain(wrapped(message), "Py4JJavaError", "dbo.t", "lo")

    assert (found.kind, found.message) == (kind, f"dbo.t: {said}")
    assert found.permanent is getattr(exceptions, kind).permanent


def test_a_certificate_that_is_not_trusted():
    found = explain(in_driver(TLS), "Py4JJavaError", "dbo.t", "lo")

    assert (found.kind, found.permanent) == ("ConnectionSettingError", True)
    assert "unable to find valid certification path to requested target. Check encrypt, trust" in found.message
    assert "ClientConnectionId" not in found.message


@pytest.mark.parametrize(
    ("text", "kind", "permanent", "said"),
    [
        (
            DISK,
            "IOException",
            False,
            "No space left on device: [TASK_WRITE_FAILED] Task failed while writing rows to file:/data/x. SQLSTATE: "
            "58030 Cause: No space left on device. Make room where staged rows lie (work_dir) and on the local disks "
            "of Spark (spark.local.dir).",
        ),
        (
            "An error occurred while calling o294.load.\n: java.lang.ClassNotFoundException: "
            f"com.microsoft.sqlserver.jdbc.SQLServerDriver{TRACE}",
            "ClassNotFoundException",
            True,
            "Spark has no JDBC driver for SQL Server: com.microsoft.sqlserver.jdbc.SQLServerDriver. Leave packages= as "
            "it is, or put com.microsoft.sqlserver:mssql-jdbc on the class path of driver and executors.",
        ),
        (in_task(MKDIRS, "java.io.IOException"), "SparkException", False, f"{MKDIRS}."),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`t` cannot be found.\nSQLSTATE: 42P01; line 1 pos 14;\n"
            "'Project [*]\n+- 'UnresolvedRelation [nope, t], [], false\n",
            "AnalysisException",
            False,
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`t` cannot be found. SQLSTATE: 42P01; line 1 pos 14; "
            "'Project [*] +- 'UnresolvedRelation [nope, t], [], false.",
        ),
        (
            "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got `LAKE`.`shop`. "
            "SQLSTATE: 42K05",
            "TargetError",
            True,
            NOT_CONFIGURED,
        ),
        ("[CATALOG_NOT_FOUND] The catalog `LAKE` not found. SQLSTATE: 42P08", "TargetError", True, NOT_CONFIGURED),
        (
            "An error occurred while calling o36.sql.\n: org.apache.spark.SparkException: Cannot find catalog plugin "
            f"class for catalog 'LAKE': org.apache.iceberg.spark.SparkCatalog.{TRACE}",
            "TargetError",
            True,
            "Spark has no class org.apache.iceberg.spark.SparkCatalog, of which catalog LAKE is to be. Check conf "
            "spark.sql.catalog.LAKE, and leave packages= as it is, or put org.apache.iceberg:iceberg-spark-runtime on "
            "the class path of driver and executors.",
        ),
        ("list index out of range", "IndexError", False, "list index out of range."),
        (
            "An error occurred while calling o1.commit.\n: java.lang.NullPointerException\n\tat x.y.Z.f(Z.java:1)\n",
            "NullPointerException",
            False,
            "java.lang.NullPointerException.",
        ),
        ("", "KeyError", False, "KeyError."),
    ],
)
def test_what_spark_and_java_say(text, kind, permanent, said):
    found = explain(text, kind if "Exception" not in kind or "[TABLE" in text else "Py4JJavaError", "dbo.t", "lo")

    assert (found.kind, found.permanent, found.message) == (kind, permanent, f"dbo.t: {said}")


def test_a_full_disk_is_the_one_that_was_written_to():
    found = explain(DISK, "Py4JJavaError", "dbo.t", "lo", "lake.shop.dbo_t")
    assert "Make room where lake.shop.dbo_t lies and on the local disks of Spark (spark.local.dir)." in found.message


def test_without_a_login_name_none_is_made_up():
    assert "TO the login;" in explain(in_driver(DENIED), "Py4JJavaError", "dbo.t", None).message


def test_no_message_is_endless():
    assert len(explain("x" * 10_000, "ValueError", "dbo.t", None).message) < 2100
