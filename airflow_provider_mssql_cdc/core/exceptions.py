"""What can go wrong: each error says what, where, and what to do."""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.position import Position

RESET_ADVICE = (
    "To load it anew, drop the target table and run `mssql-cdc checkpoint reset`; or name the position that its rows "
    "stand for, if you know it, with `mssql-cdc checkpoint set`."
)
"""What to do about a target whose rows do not go on as they were begun."""


class MsSqlCdcError(Exception):
    """Base of all errors of this package.

    :param message: what is wrong
    :param table: the source table concerned, as ``schema.table``; None if it concerns the database or the run
    :param advice: what to do about it
    :cvar permanent: whether a repetition without a change by a person is bound to fail again
    """

    permanent = True

    def __init__(self, message: str, *, table: str | None = None, advice: str | None = None) -> None:
        self.message, self.table, self.advice = message, table, advice
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.table}: {self.message}" if self.table else self.message
        return f"{text} {self.advice}" if self.advice else text


def unnamed(text: object, table: object) -> str:
    """An error's text without the table's name before it, for a line that begins with that name.

    :param text: or the error
    :param table: its name
    """
    return str(text).removeprefix(f"{table}: ")


class ParameterError(MsSqlCdcError, ValueError):
    """A parameter of sensor, trigger or load has no meaning."""


class CdcDisabledError(MsSqlCdcError):
    """CDC is off: for the database, or for a table that the run names."""


class ChangeTrackingDisabledError(MsSqlCdcError):
    """Change Tracking is off: for the database, or for a table that is named."""


class TableNotFoundError(MsSqlCdcError):
    """No table matches the patterns."""


class SqlServerError(MsSqlCdcError):
    """SQL Server answered with an error, or the connection broke.

    :param number: SQL Server's error number, or that of DB-Library for a broken connection
    """

    permanent = False

    def __init__(self, message: str, *, number: int, advice: str | None = None) -> None:
        super().__init__(message, advice=advice)
        self.number = number


class CdcPermissionError(SqlServerError):
    """The login may not read what it must, or may not see it (error 208); the advice holds the GRANT."""

    permanent = True


class LoginError(SqlServerError):
    """SQL Server refused the login."""

    permanent = True


class ServerUnreachableError(SqlServerError):
    """No SQL Server answered at that host and port."""


class DatabaseUnavailableError(SqlServerError):
    """The database does not exist, is not open, or is closed to this login."""


class ConnectionSettingError(MsSqlCdcError):
    """The Airflow connection says something that cannot be done."""


class GapError(MsSqlCdcError):
    """Changes were purged before they were loaded, or are not in the feed that is read.

    :param after: the position up to which all is loaded
    :param readable_from: behind this position all changes can still be read; None where none can
    :param other: the feed that is read, where all until now was loaded from another one
    :param why: they are not there, where they were not purged
    """

    def __init__(
        self,
        table: str,
        after: Position,
        readable_from: Position | None,
        *,
        advice: str,
        other: str | None = None,
        why: str | None = None,
    ) -> None:
        upto = f" up to {readable_from}" if readable_from else ""
        gone = f"are not in {other}" if other else "were purged before they were loaded"
        super().__init__(
            f"the changes after {after} do not tell all that has gone: {why}."
            if why
            else f"the changes after {after}{upto} {gone}.",
            table=table,
            advice=advice,
        )
        self.after, self.readable_from = after, readable_from


class FeedError(MsSqlCdcError):
    """What a table is read by cannot do what the load asks for."""


class RestoredError(MsSqlCdcError):
    """The database's history of positions is not the one that was read: restored, or CDC enabled anew."""


class SourceRestoredError(MsSqlCdcError):
    """The database was restored while a run read it, so that what was read may be of two histories."""

    permanent = False


class SchemaChangedError(MsSqlCdcError):
    """Captured columns changed since the checkpoint, or within the window."""


class ProposalOverdueError(MsSqlCdcError):
    """Nobody has made the capture instance that is proposed, for longer than ``propose_timeout``."""


class InstanceChangedError(MsSqlCdcError):
    """The capture instance, or the tracked table, is no longer the one that was planned with; planning again settles
    it."""

    permanent = False


class KeyRequiredError(MsSqlCdcError):
    """The shape needs a key, and the table has none."""


class CopyUncertainError(MsSqlCdcError):
    """A copy does not tell what the table holds, since rows changed in a certain way meanwhile; another copy may."""

    permanent = False


class CopyRefusedError(MsSqlCdcError):
    """A table cannot be copied as its database lets it be read: rows would be missing, or there twice."""


class NoRoomError(MsSqlCdcError):
    """A disk has less room than a table that is to be copied to there takes."""


class CopyAskedError(MsSqlCdcError):
    """What is asked of the copies of some tables cannot be done as they stand."""


class CopyStoppedError(MsSqlCdcError):
    """A person has stopped the copy with which a sink was to begin."""


class UnsupportedColumnError(MsSqlCdcError):
    """A captured column has a type that cannot be loaded without changing its values."""


class NameTakenError(UnsupportedColumnError):
    """A captured column would be loaded under the name of another one, or of a column of the load."""


class MaskedError(MsSqlCdcError):
    """The login reads other values, or fewer rows, than the table holds."""


class SelectionError(MsSqlCdcError, ValueError):
    """What is to be loaded of a table's rows cannot be chosen so."""


class RenamedColumnError(SelectionError):
    """A column that an entry names has another name by now."""


class SelectionChangedError(MsSqlCdcError):
    """What is to be loaded of a table's rows is not what the target was loaded with."""


class CheckpointError(MsSqlCdcError):
    """A checkpoint cannot be read, is newer than this package, or does not fit the target."""


class NewerCheckpointError(CheckpointError):
    """A later version of this package has written a checkpoint, so that this one must not judge it."""


class TargetError(MsSqlCdcError):
    """The target table is not what the load may write to."""


class LostValueError(TargetError):
    """A target lacks a row, or has it otherwise, of which a later change leaves out a value; a copy may tell it."""


class TargetUnavailableError(TargetError):
    """The database of a target did not answer, or was busy."""

    permanent = False


class CommitConflictError(MsSqlCdcError):
    """Others changed the same sink again and again while this run tried, or dropped the branch that it wrote."""

    permanent = False


class NotLoadedYetError(MsSqlCdcError):
    """A window to replay ends behind what the sink has loaded."""

    permanent = False


class CaptureLagError(MsSqlCdcError):
    """The capture did not pass the wanted point in time; the advice holds the Agent's state."""

    permanent = False


class CaptureLateError(MsSqlCdcError):
    """The capture is late, and ``on_lag="fail"`` asks for an error: after what is there was loaded, where it loads."""

    permanent = False


class FormatError(MsSqlCdcError):
    """A marker, checkpoint, job spec or receipt cannot be read."""


class NewerFormatError(FormatError):
    """A later version of this package has written a marker, checkpoint, job spec or receipt; this one leaves it."""


class SpecError(MsSqlCdcError):
    """A job spec does not say what its job needs."""


class WorkDirError(MsSqlCdcError):
    """``work_dir`` cannot be written to, or read."""

    permanent = False


class ReceiptMissingError(MsSqlCdcError):
    """The Spark application ended without a receipt, so nothing is known of what it did."""

    permanent = False


class SparkMissingError(MsSqlCdcError):
    """Spark, its Java, or a jar that the job needs is missing where the task runs."""

    permanent = False


class CutError(MsSqlCdcError):
    """What was given as ``upto`` is no position."""


class IntervalError(MsSqlCdcError, ValueError):
    """A data interval cannot be turned into positions."""


class IntervalNotReachedError(IntervalError):
    """The capture has not yet passed the end of the interval."""

    permanent = False


class LoadFailedError(MsSqlCdcError):
    """Some tables failed.

    :param failures: table name to error text
    :param others: what became of the other tables: status in the summary to their number
    :param late: what was seen of a capture that is late, where that is an error too
    """

    def __init__(
        self, failures: dict[str, str], *, permanent: bool, others: dict[str, int], late: str | None = None
    ) -> None:
        lines = (f"{table}: {unnamed(reason, table)}" for table, reason in sorted(failures.items()))
        rest = ", ".join(f"{number} {_OTHERS[status]}" for status, number in sorted(others.items()))
        super().__init__(
            f"{len(failures)} of {len(failures) + sum(others.values())} table(s) failed"
            + (f"; of the others, {rest}" if rest else "")
            + ":\n"
            + "\n".join(f"  {line}" for line in (*lines, *([late] if late else [])))
        )
        self.failures, self.permanent = failures, permanent


_OTHERS = {
    "loaded": "loaded",
    "quiet": "without anything new",
    "waiting": "waiting for the capture",
    "copying": "copying",
    "skipped": "skipped",
    "dropped": "dropped",
}
