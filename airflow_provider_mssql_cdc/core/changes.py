"""What a history holds: the five ways to look at changes that SSIS names, and the form of the records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.exceptions import KeyRequiredError, ParameterError
from airflow_provider_mssql_cdc.core.shapes import HISTORY
from airflow_provider_mssql_cdc.core.table import TableName

ALL, ALL_OLD = "all", "all_old"
NET, NET_MASK, NET_MERGE = "net", "net_mask", "net_merge"

NET_CHANGES = (NET, NET_MASK, NET_MERGE)
"""The ways that show at most one row for each key of a window."""

CHANGES = (ALL, ALL_OLD, *NET_CHANGES)
"""Every change; every change, and of updates the values before them; one row for each key; that, with the columns that
its updates changed; that, with inserts and updates as one kind."""

EVENTS, WIDE = "events", "wide"
FORMS = (EVENTS, WIDE)
"""A row for each image of a change, or one record for each change, with the values before and after it."""

INSERT, UPDATE, DELETE = "insert", "update", "delete"
OPERATIONS = (INSERT, UPDATE, DELETE)


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What a history holds.

    :param changes: one of ``CHANGES``
    :param form: one of ``FORMS``
    :param operations: kinds of events that are not left out, in the order of ``OPERATIONS``; rows that a first load
        copied are no events
    """

    changes: str = ALL_OLD
    form: str = EVENTS
    operations: tuple[str, ...] = OPERATIONS
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def checked(
        cls, changes: str, form: str, operations: Sequence[str], *, shapes: Collection[str], replay: bool = False
    ) -> HistoryOptions:
        """The options.

        :param shapes: that are loaded
        :param replay: whether a past window is to be written again
        :raises ParameterError: for names that are none, or for what cannot be right together
        """
        check_changes(changes)
        if form not in FORMS:
            raise ParameterError(f"history_form={form!r}: expected {' or '.join(FORMS)}")
        unknown = [operation for operation in operations if operation not in OPERATIONS]
        if unknown or not operations or len(set(operations)) != len(operations):
            raise ParameterError(f"operations={operations!r}: expected some of {list(OPERATIONS)}, each once")
        options = cls(changes, form, tuple(operation for operation in OPERATIONS if operation in operations))
        if options != DEFAULT and HISTORY not in shapes:
            raise ParameterError('changes, history_form and operations belong to shapes=["history"]')
        if form == WIDE and changes != ALL_OLD:
            raise ParameterError(f"history_form={WIDE!r} has the values before each change: it needs {ALL_OLD!r}")
        if changes == NET_MERGE and (INSERT in operations) != (UPDATE in operations):
            raise ParameterError(f"changes={NET_MERGE!r} does not tell inserts from updates: name both, or neither")
        if replay and options.is_net:
            raise ParameterError(
                f"changes={changes!r}: net rows are those of the window that was loaded, and no event's own, so that a "
                "replay cannot tell which are missing"
            )
        return options

    @property
    def is_wide(self) -> bool:
        """Whether a row holds the values before and after a change."""
        return self.form == WIDE

    @property
    def is_net(self) -> bool:
        """Whether rows are what the events of a window come to."""
        return self.changes in NET_CHANGES

    @property
    def has_latest(self) -> bool:
        """Whether the newest row of a key has the values that the key had last."""
        return INSERT in self.operations and UPDATE in self.operations

    def __str__(self) -> str:
        kinds = "" if self.operations == OPERATIONS else f" of {', '.join(self.operations)}"
        return f"{self.changes!r} changes{kinds} as {self.form}"


DEFAULT = HistoryOptions()


def check_changes(changes: str) -> None:
    """Refuse what is none of the five ways.

    :raises ParameterError: naming them
    """
    if changes not in CHANGES:
        raise ParameterError(f"changes={changes!r}: expected one of {', '.join(CHANGES)}")


def check_history_key(table: TableName, options: HistoryOptions, *, key: Sequence[str], unique: bool) -> None:
    """Refuse a history that needs a key of SQL Server's own, which says for sure which changes are of one row.

    :param key: columns that identify a row; none for a table without a key
    :param unique: whether the server enforces it
    :raises KeyRequiredError: for net changes without such a key, and for ``operations`` with a key of the user's
        choice, where a first load could not tell which copied rows the changes concern that are left out
    """
    if key and unique:
        return
    if options.is_net:
        what = f"changes={options.changes!r}"
    elif key and options.operations != OPERATIONS:
        what = f"operations={list(options.operations)}"
    else:
        return
    raise KeyRequiredError(
        f"{what} needs a key that SQL Server enforces: a primary key, or the unique index of the capture instance.",
        table=str(table),
        advice="Enable an instance with @index_name, or take all changes of all operations.",
    )
