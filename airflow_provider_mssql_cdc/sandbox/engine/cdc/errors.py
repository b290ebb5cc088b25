"""The errors of CDC: numbers, severities and texts, with the arguments in the order in which SQL Server gives them."""

from __future__ import annotations

from typing import Final

from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError

# Where clients match on a text it is SQL Server's; the others say the same in few words.
_TEXTS: Final = {
    208: "Invalid object name '{}'.",
    4711: "Table '{}' is tracked by Change Data Capture and cannot be truncated.",
    4928: "Column '{}' cannot be altered: it is {}.",
    7139: "LOB value of {} bytes is longer than the configured max text repl size of {} bytes.",
    22022: "SQL Server Agent refuses to {} job '{}': {}.",
    22832: "Metadata could not be updated for table {}: {}.",
    22836: "The job metadata in msdb.dbo.cdc_jobs could not be updated: a {} job exists already.",
    22838: "Index '{}' of table '{}.{}' has a nullable column and cannot identify rows.",
    22850: "@threshold must be positive.",
    22865: "Index '{}' of table '{}.{}' has more than 14 columns, too many for net changes.",
    22874: "Extended DDL handling is not available.",
    22901: "Database '{}' is not enabled for Change Data Capture.",
    22902: "The caller must be a member of sysadmin.",
    22903: "Another connection (session {}) is already running the log scan for this database.",
    22904: "The caller must be a member of db_owner.",
    22905: "Database '{}' is already enabled for Change Data Capture.",
    22906: "Database '{}' has a user or schema named cdc already.",
    22907: "@role_name is empty; NULL means that no role gates the access.",
    22910: "Cleanup failed: database '{}' is not enabled for Change Data Capture.",
    22914: "DDL in a database with Change Data Capture needs sysadmin, db_owner or db_ddladmin.",
    22920: "Capture instance '{}' does not exist in database '{}'.",
    22925: "Too many columns to capture: {}; at most {} are possible.",
    22926: "Capture instance name '{}' is already in use in this database.",
    22927: "Capture instance name '{}' is longer than 100 characters.",
    22928: "Index '{}' is not an index of table '{}.{}'.",
    22929: "Index '{}' of table '{}.{}' is neither its primary key nor unique.",
    22931: "Source table '{}.{}' does not exist in this database.",
    22932: "Capture instance name '{}' is not a valid identifier.",
    22939: "Net changes need a primary key or @index_name.",
    22942: "The captured column list does not map to columns of table '{}.{}'.",
    22943: "The captured column list lacks key columns that net changes need.",
    22956: "No low-water mark can be found for capture instance '{}'.",
    22957: "LSN {} lies outside the validity interval of capture instance '{}', {} to {}.",
    22960: "Capture instance '{}' does not belong to table '{}.{}'.",
    22962: "Table '{}.{}' already has two capture instances.",
    22963: "Parameter {} must not be NULL or empty.",
    22964: "LSN {} is not a start_lsn in cdc.lsn_time_mapping.",
    22965: "A quoted name in the captured column list is not terminated.",
    22970: "@maxscans must be positive.",
    22972: "@source_schema and @source_name must be given together.",
    22973: "Filegroup '{}' does not exist in database '{}'.",
    22974: "Tables of schema cdc cannot be tracked.",
    22975: "A column of table '{}' has a name that is reserved for change tables.",
    22976: "Column '{}' of change table 'cdc.{}' could not be altered to {}: {}.",
    22979: "Unique index '{}' of table '{}' is used by Change Data Capture; its constraint stays.",
    22981: "Object does not exist or access is denied.",
    22983: "Unique index '{}' of table '{}' is used by Change Data Capture; it cannot be altered or dropped.",
    22985: "Table '{}.{}' is not enabled for Change Data Capture.",
    22989: "Database '{}' cannot have Change Data Capture.",
    22990: "The polling interval must be between 0 and 86399 seconds.",
    22991: "@maxtrans must be positive.",
    22992: "'{}' is not a job type; capture and cleanup are.",
    22994: "@retention must be between 1 and 52594800 minutes.",
    22995: "@retention and @threshold do not apply to the capture job.",
    22996: "@maxtrans, @maxscans, @continuous and @pollinginterval do not apply to the cleanup job.",
    22997: "The {} job has no row in msdb.dbo.cdc_jobs.",
    22998: "@continuous must be 0 or 1.",
    22999: "A polling interval needs a continuous scan.",
}
_SEVERITY_10 = {
    22022: "Job '{}' was created but not started: SQL Server Agent is not running.",
    22905: _TEXTS[22905],
    22969: "Net changes cannot evaluate update masks while the server option clr enabled is 0.",
}


def error(number: int, *arguments: object, procedure: str = "", state: int = 1) -> SqlError:
    """An error of severity 16.

    :param arguments: what the text carries, in order
    :param procedure: the procedure that raises it
    """
    return SqlError(number, _TEXTS[number].format(*arguments), state=state, procedure=procedure)


def notice(number: int, *arguments: object, procedure: str = "") -> Message:
    """A message of severity 10, which no client takes for an exception."""
    text = _SEVERITY_10.get(number, _TEXTS.get(number, ""))
    return Message(number, text.format(*arguments), severity=10, procedure=procedure)


def printed(text: str, procedure: str = "") -> Message:
    """What PRINT sends."""
    return Message(0, text, severity=0, procedure=procedure)


def insufficient_arguments(function: str) -> SqlError:
    """Error 313, which SQL Server gives for every bad LSN range.

    :param function: 'all' or 'net'
    """
    # The odd spaces are SQL Server's: the text names a placeholder function, not the instance's own.
    return SqlError(
        313,
        "An insufficient number of arguments were supplied for the procedure or function "
        f"cdc.fn_cdc_get_{function}_changes_ ... .",
        state=3,
    )
