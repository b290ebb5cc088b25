"""What of a row is loaded: a list of columns, a filter of rows, new names, masks; and how two such choices compare."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.table import Column

HASH, REDACT, DROP = "hash", "redact", "drop"
MASKS = (HASH, REDACT, DROP)
"""What becomes of a value: SHA-256 of salt and value; the same for all rows; or no column at all."""

SHORTEST_SALT = 16
"""Characters. Whoever can guess the salt can try out values until their hash is found."""

_HASH_FORMAT = "1"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is loaded of one table. Columns are named as the source table spells them.

    :param columns: those that targets hold, in their order; all if empty
    :param conditions: what a row must fulfil, all of them
    :param renames: column to its name in the targets
    :param masks: column to ``hash`` or ``redact``
    :param salt_check: tells one salt from another, and not what it is; None where nothing is hashed
    """

    columns: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)
    masks: dict[str, str] = field(default_factory=dict)
    salt_check: str | None = None

    def holds(self, name: str) -> bool:
        """Whether targets hold the column."""
        return not self.columns or name in self.columns

    def name_of(self, column: Column) -> str:
        """What targets call the column that gets its values."""
        return self.renames.get(column.name, column.name) + column.suffix

    @property
    def filtered(self) -> frozenset[str]:
        """The columns that the filter judges."""
        return frozenset(condition.column for condition in self.conditions)

    def within(self, names: Collection[str]) -> Selection:
        """The same of a table that has no other columns.

        :param names: of its columns
        """
        masks = {name: mask for name, mask in self.masks.items() if name in names}
        return dataclasses.replace(
            self,
            columns=tuple(name for name in self.columns if name in names),
            renames={old: new for old, new in self.renames.items() if old in names},
            masks=masks,
            salt_check=self.salt_check if HASH in masks.values() else None,
        )

    def named(self, names: Mapping[str, str]) -> Selection:
        """The same of columns that have other names.

        :param names: the other name by the one of here, of those that have one
        """
        if not names:
            return self

        def other(name: str) -> str:
            return names.get(name, name)

        return dataclasses.replace(
            self,
            columns=tuple(map(other, self.columns)),
            conditions=tuple(dataclasses.replace(each, column=other(each.column)) for each in self.conditions),
            renames={other(old): new for old, new in self.renames.items() if other(old) != new},
            masks={other(name): mask for name, mask in self.masks.items()},
        )

    def describe(self) -> tuple[str, ...]:
        """Each choice as text for people; nothing if all is loaded as it is."""
        lines = [f"columns {', '.join(self.columns)}"] if self.columns else []
        lines += sorted(f"rows with {condition}" for condition in self.conditions)
        lines += [f"{old} renamed to {new}" for old, new in sorted(self.renames.items())]
        lines += [f"{name} masked by {mask}" for name, mask in sorted(self.masks.items())]
        return (*lines, f"salt {self.salt_check}") if self.salt_check else tuple(lines)

    @property
    def hash(self) -> str | None:
        """``1:`` and the SHA-256 of what is chosen; None if all is loaded as it is."""
        lines = self.describe()
        return f"{_HASH_FORMAT}:{hashlib.sha256(json.dumps(lines).encode()).hexdigest()}" if lines else None


EVERYTHING = Selection()


def same_selection(stored: str | None, selection: Selection) -> bool:
    """Whether a stored hash stands for this selection. One of another format says nothing, so it counts as equal.

    :param stored: None for rows that are loaded as they are, by an older version too
    """
    known = stored is None or stored.startswith(_HASH_FORMAT + ":")
    return not known or stored == selection.hash


def what_differs(then: Iterable[str], now: Iterable[str]) -> str:
    """For people: what was chosen otherwise.

    :param then: lines of ``Selection.describe``
    :param now: the same
    """
    before, after = list(then), list(now)
    parts = [f"no longer: {line}" for line in before if line not in after]
    parts += [f"new: {line}" for line in after if line not in before]
    return "; ".join(parts)


def salt_check(salt: str) -> str:
    """What tells one salt from another without revealing it.

    :raises ParameterError: for a salt that could be guessed
    """
    if len(salt) < SHORTEST_SALT:
        raise ParameterError(f"the salt has less than {SHORTEST_SALT} characters, so that it could be guessed")
    return hmac.new(salt.encode(), b"mssql-cdc selection", hashlib.sha256).hexdigest()[:16]
