"""How a statement reads a user table, by its isolation level, the database's options and the table hints."""

from __future__ import annotations

from enum import Enum, auto

from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported

_DIRTY = frozenset(("nolock", "readuncommitted"))
CLOSING = frozenset(("tablockx",))
WHOLE = frozenset(("tablock", "holdlock", "serializable"))
FOR_UPDATE = frozenset(("updlock", "xlock"))


class Reads(Enum):
    """How a statement reads a user table."""

    VERSIONS = auto()  # all at one moment, without waiting
    NOT_COMMITTED = auto()
    PAST_LOCKS = auto()  # without the rows that others have changed
    LOCKS = auto()


def how(isolation: IsolationLevel, database: Database, hints: frozenset[str]) -> Reads:
    """How a table of a database is read.

    :param hints: in lower case
    :raises SqlError: 650 for READPAST in another isolation level than those that skip locked rows
    """
    if "readpast" in hints:
        _check_past_locks(isolation, hints)
        return Reads.PAST_LOCKS
    if hints & _DIRTY or isolation is IsolationLevel.READ_UNCOMMITTED:
        return Reads.NOT_COMMITTED
    if isolation is IsolationLevel.SNAPSHOT:
        return Reads.VERSIONS
    by_versions = isolation is IsolationLevel.READ_COMMITTED and database.read_committed_snapshot
    locking = {"readcommittedlock", "repeatableread", *WHOLE, *CLOSING, *FOR_UPDATE}
    return Reads.VERSIONS if by_versions and not hints & locking else Reads.LOCKS


def _check_past_locks(isolation: IsolationLevel, hints: frozenset[str]) -> None:
    """Refuse READPAST where rows are not skipped (docs: table hints; beside HOLDLOCK as one reported it of SNAPSHOT).

    :raises SqlError: 650
    """
    if isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ):
        if hints & {"holdlock", "serializable"}:
            raise unsupported("READPAST beside HOLDLOCK or SERIALIZABLE")
        return
    if hints & {"readcommitted", "readcommittedlock", "repeatableread"}:
        raise unsupported("READPAST in this isolation level beside a hint that names another one")
    raise SqlError.of(650)
