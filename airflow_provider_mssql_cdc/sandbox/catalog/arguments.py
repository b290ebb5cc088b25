"""System procedures as data, and the arguments of a call matched to a procedure's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import Outcome, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.types import SqlType


@dataclass(slots=True)
class Argument:
    """An argument of a call.

    :param variable: the variable that an OUTPUT argument is assigned to, in a batch
    """

    name: str
    type: SqlType
    value: Any
    output: bool = False
    default: bool = False
    variable: str = ""


@dataclass(slots=True)
class Bound:
    """Values by parameter name, in lower case; what was not given is not there.

    :param positions: the position of an argument given with OUTPUT, by parameter
    """

    values: dict[str, Any]
    positions: dict[str, int]

    def value(self, name: str) -> Any:
        """A value, None where it was not given."""
        return self.values.get(name)

    def text(self, name: str) -> str | None:
        """A string value."""
        value = self.values.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        """An integer value."""
        value = self.values.get(name)
        try:
            return None if value is None else int(value)
        except ValueError:
            raise SqlError.of(8114) from None

    def flag(self, name: str) -> bool | None:
        """A bit value."""
        value = self.number(name) if not isinstance(self.values.get(name), bool) else self.values[name]
        return None if value is None else bool(value)


Result = Relation | Iterable[Outcome] | None


class Procedure(NamedTuple):
    """A system procedure.

    :param signature: its parameters, ``@a!, @b``; the mark ! is on what must be given
    :param run: gives a result set, other outcomes, or nothing
    :param right: db_owner or sysadmin; '' for everybody
    """

    signature: str
    run: Callable[[Executor, Database, Bound], Result]
    right: str = ""


def bind(procedure: str, signature: str, arguments: list[Argument]) -> Bound:
    """Match arguments to a signature.

    :raises SqlError: 201 a required parameter is missing, 8144 too many arguments, 8145 an unknown parameter
    """
    parameters = [part.strip() for part in signature.split(",")] if signature else []
    names = [parameter.rstrip("!") for parameter in parameters]
    bound = Bound({}, {})
    for position, argument in enumerate(arguments):
        if argument.name:
            name = argument.name.casefold()
            if name not in names:
                raise SqlError.of(8145, argument.name, procedure)
        elif position < len(names):
            name = names[position]
        else:
            raise SqlError.of(8144, procedure)
        if not argument.default:
            bound.values[name] = argument.value
        if argument.output:
            bound.positions[name] = position
    for parameter in parameters:
        if parameter.endswith("!") and parameter[:-1] not in bound.values:
            raise SqlError.of(201, procedure, parameter[:-1])
    return bound
