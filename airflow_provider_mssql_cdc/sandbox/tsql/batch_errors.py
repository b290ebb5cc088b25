"""What an error of a statement ends: its transaction, its batch, or the TRY block whose CATCH block takes it."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

# errors that end the batch; those above severity 16 end the connection, which the sandbox never does
ENDS_TRANSACTION = frozenset({241, 242, 245, 295, 1205, 3960, 3961, 8114, 8169})
ENDS_BATCH = ENDS_TRANSACTION | {
    102, 105, 113, 137, 156, 168, 174, 189, 195, 207, 208, 209, 313, 1007, 1087, 3617, 3930, 3931, 4104, 4121, 10704,
}  # fmt: skip
# errors after which a statement that writes is said to be terminated
ENDS_STATEMENT = frozenset({220, 512, 515, 544, 1505, 2601, 2627, 2628, 7139, 8115, 8134, 8152})
# docs (TRY...CATCH): errors of compiling a statement are not handled by a CATCH block of the same level
_COMPILING = frozenset({102, 105, 113, 137, 156, 168, 174, 189, 195, 207, 208, 209, 1007, 1087, 4104, 4121})
_CANCELLED = 3617


class BatchAborted(Exception):
    """The rest of the batch is not run."""


class Caught(Exception):
    """An error on its way to a CATCH block."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error.text)
        self.error = error


class Thrown(SqlError):
    """An error of THROW, which ends the batch."""


def is_caught(env: Environment, error: SqlError) -> bool:
    """Whether a CATCH block takes an error."""
    if not env.tries or error.severity >= 20 or error.number == _CANCELLED or isinstance(error, Unsupported):
        return False
    deeper = bool(error.procedure) or env.procedure_depth > env.tries[-1]
    return deeper or error.number not in _COMPILING
