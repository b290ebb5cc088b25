"""The JSON of marker, checkpoint, job spec and receipt: a version each, and what a version does not know is kept."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from airflow_provider_mssql_cdc import __version__
from airflow_provider_mssql_cdc.core.exceptions import FormatError, NewerFormatError
from airflow_provider_mssql_cdc.core.position import Cut, Lsn, Position, position_of_kind

UNKNOWN = "unknown"
"""Field of a record that holds what the JSON has beside its fields, so that it is there when it is written back."""

KIND = "kind"


@dataclass(frozen=True, slots=True)
class Format:
    """A document that later versions of this package read.

    A document is a dataclass with its format as the class variable ``FORMAT``. A field that is added to it needs a
    default and no new version; a field that must not be ignored raises ``version``.

    :param name: for people
    :param version: that is written; older ones are upgraded when they are read, newer ones are refused
    :param needs: the lowest version of this package that reads what is written
    :param upgrades: from each older version to the JSON of the one after it
    """

    name: str
    version: int
    needs: str
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]


class Tagged:
    """Marks a position (``Annotated[Position, Tagged]``) whose kind stands beside it, also where it is an LSN."""


_T = TypeVar("_T")


def to_data(document: Any) -> dict[str, Any]:
    """The JSON of a document, as a dictionary."""
    form: Format = document.FORMAT
    return {"version": form.version, "needs": form.needs, **_record(document)}


def to_json(document: Any) -> str:
    """The JSON of a document."""
    return json.dumps(to_data(document), indent=1, sort_keys=True)


def from_json(kind: type[_T], text: str) -> _T:
    """Read a document.

    :raises FormatError: if it is damaged
    :raises NewerFormatError: if a later version of this package has written it
    """
    try:
        data = json.loads(text)
    except (ValueError, TypeError) as error:
        raise _unreadable(kind, error) from error
    return from_data(kind, data)


def from_data(kind: type[_T], data: Any) -> _T:
    """Read a document from its JSON as a dictionary.

    :raises FormatError: if it is damaged
    :raises NewerFormatError: if a later version of this package has written it
    """
    form: Format = kind.FORMAT  # type: ignore[attr-defined]
    try:
        version = int(data["version"])
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(kind, error) from error
    if version > form.version:
        raise NewerFormatError(
            f"the {form.name} has version {version}, which airflow-provider-mssql-cdc "
            f"{data.get('needs', 'of a later version')} reads; this is {__version__}, which reads up to version "
            f"{form.version}.",
            advice="Upgrade the package wherever this task, its triggers and its Spark jobs run.",
        )
    try:
        while version < form.version:
            data, version = form.upgrades[version](data), version + 1
        data = {name: value for name, value in data.items() if name not in ("version", "needs")}
        return typing.cast(_T, _made(kind, data))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"the {form.name} is damaged: {error!r}.") from error


def _unreadable(kind: Any, error: Exception) -> FormatError:
    return FormatError(f"the {kind.FORMAT.name} is not readable: {error!r}.")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _record(value: Any) -> dict[str, Any]:
    record: Any = type(value)
    hints = _hints(record)
    found = dict(getattr(value, UNKNOWN, {}))
    if hasattr(value, "KIND"):
        found[KIND] = value.KIND
    for name, hint in hints.items():
        if name != UNKNOWN:
            found[name] = _tagged(getattr(value, name)) if _is_tagged(hint) else _plain(getattr(value, name))
    return found


def _is_tagged(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Annotated and Tagged in hint.__metadata__


def _tagged(value: Position | None) -> dict[str, Any] | None:
    return None if value is None else {KIND: value.KIND, "at": value.text}


def _plain(value: Any) -> Any:
    if isinstance(value, Position):
        return value.text if isinstance(value, Lsn) else _tagged(value)
    if isinstance(value, Cut):
        return value.text
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_data(value) if hasattr(value, "FORMAT") else _record(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _typed(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return None if value is None else position_of_kind(value[KIND], value["at"])
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _one_of(_members(kind), value)
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, Position):
        return _position(kind, value)
    if kind in (Lsn, Position):
        return Lsn.parse(value)
    if kind is Cut:
        return Cut.parse(value)
    if kind is datetime.datetime:
        return datetime.datetime.fromisoformat(value)
    if origin is tuple:
        return tuple(_typed(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _typed(arguments[1], item) for key, item in value.items()}
    if "KINDS" in vars(kind):
        return _one_of([*kind.KINDS.values()], value, of_many=True)
    if dataclasses.is_dataclass(kind):
        return from_data(typing.cast(Any, kind), value) if hasattr(kind, "FORMAT") else _made(kind, value)
    return kind(value) if kind is float else value


def _position(kind: type[Position], value: Mapping[str, Any]) -> Position:
    found = position_of_kind(value[KIND], value["at"])
    if not isinstance(found, kind):
        raise ValueError(f"the {found.KIND} {found.text} is no {kind.KIND}")
    return found


def _members(kind: Any) -> list[Any]:
    return [each for each in typing.get_args(kind) or (kind,) if each is not type(None)]


def _one_of(members: list[Any], value: Any, *, of_many: bool = False) -> Any:
    """A value of a union: of records the one whose kind the value names.

    :param of_many: there may be more members where others load
    """
    if len(members) == 1 and not of_many:
        return _typed(members[0], value)
    return _typed(next(member for member in members if _untagged(members, value)[KIND] == member.KIND), value)


def _untagged(members: list[Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds = [member.KIND for member in members]
    if value[KIND] not in kinds:
        raise ValueError(f"the kind {value[KIND]!r} is none of {', '.join(kinds)}")
    return value


def _made(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    if hasattr(kind, "KIND"):
        value = {name: item for name, item in _untagged([kind], value).items() if name != KIND}
    found = {name: _typed(hint, value[name]) for name, hint in hints.items() if name in value and name != UNKNOWN}
    if UNKNOWN in hints:
        found[UNKNOWN] = {name: item for name, item in value.items() if name not in hints}
    return kind(**found)
