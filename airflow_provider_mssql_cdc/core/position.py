"""Positions up to which changes are read, in an order of each kind; cuts, windows, and the one rule of gaps."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

_HEX_FORM = re.compile(r"0[xX]([0-9a-fA-F]{20})")
_COLON_FORM = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})")
_LARGEST = (1 << 80) - 1
_VERSION_FORM = re.compile("0|[1-9][0-9]{0,18}")

_P = TypeVar("_P", bound="Position")


class Position:
    """How far the changes of a source are read. Positions of one kind have an order; comparing two kinds raises.

    :cvar KIND: names the kind in JSON, and the columns of such positions
    :cvar WORD: names the kind for people
    :cvar COLUMN_TYPE: Spark SQL type of these columns
    """

    __slots__ = ()

    KIND: ClassVar[str]
    WORD: ClassVar[str]
    COLUMN_TYPE: ClassVar[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``text``.

        :raises ValueError: for any other text
        """
        raise NotImplementedError

    @classmethod
    def of(cls, position: Position) -> Self:
        """The position, where only one of this kind has a meaning.

        :raises TypeError: if it is of another kind
        """
        if not isinstance(position, cls):
            raise TypeError(f"the {position.KIND} {position.text} is no {cls.WORD}")
        return position

    @property
    def text(self) -> str:
        """The form that JSON and XCom have."""
        raise NotImplementedError

    @property
    def sort_key(self) -> str | int:
        """The value that staged rows and targets have in their column of positions, in the order of positions."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The form for people."""
        return self.text

    def __lt__(self, other: Position) -> bool:
        return bool(self.sort_key < self._comparable(other))

    def __le__(self, other: Position) -> bool:
        return bool(self.sort_key <= self._comparable(other))

    def __gt__(self, other: Position) -> bool:
        return bool(self.sort_key > self._comparable(other))

    def __ge__(self, other: Position) -> bool:
        return bool(self.sort_key >= self._comparable(other))

    def _comparable(self, other: Position) -> Any:
        if not isinstance(other, type(self)):
            raise TypeError(f"the {self.KIND} {self.text} has no order with {other!r}")
        return other.sort_key


@dataclass(frozen=True, slots=True)
class Lsn(Position):
    """A log sequence number: a position in SQL Server's transaction log; ten bytes, compared unsigned.

    The text is ``0x`` and 20 upper-case hex digits, whose order is LSN order.

    :param value: the ten bytes of a ``binary(10)``, as drivers return them
    :raises ValueError: for any other length
    """

    value: bytes

    LENGTH: ClassVar[int] = 10
    KIND: ClassVar[str] = "lsn"
    WORD: ClassVar[str] = "LSN"
    COLUMN_TYPE: ClassVar[str] = "STRING"

    def __post_init__(self) -> None:
        if not isinstance(self.value, bytes) or len(self.value) != self.LENGTH:
            raise ValueError(f"an LSN has {self.LENGTH} bytes, not {self.value!r}")

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Read ``0x0000002D00000580001D`` or ``0000002d:00000580:001d``, in upper or lower case.

        :raises ValueError: for any other text; never reads a shorter number as a padded one
        """
        if match := _HEX_FORM.fullmatch(text):
            return cls(bytes.fromhex(match[1]))
        if match := _COLON_FORM.fullmatch(text):
            return cls(bytes.fromhex(match[1] + match[2] + match[3]))
        raise ValueError(f"not an LSN: {text!r}; expected 0x and 20 hex digits, or 00000000:00000000:0000")

    @property
    def text(self) -> str:
        """``0x`` and 20 upper-case hex digits."""
        return "0x" + self.value.hex().upper()

    @property
    def sort_key(self) -> str:
        """The text: its order is LSN order."""
        return self.text

    @property
    def is_zero(self) -> bool:
        """Whether this is what SQL Server answers for an unknown or unauthorised capture instance."""
        return not any(self.value)

    def next(self) -> Lsn:
        """The LSN one above, as ``sys.fn_cdc_increment_lsn`` does.

        :raises OverflowError: above ten 0xFF bytes, where SQL Server's own answer is not known
        """
        number = int.from_bytes(self.value) + 1
        if number > _LARGEST:
            raise OverflowError("no LSN above " + str(self))
        return Lsn(number.to_bytes(self.LENGTH))

    def previous(self) -> Lsn:
        """The LSN one below, as ``sys.fn_cdc_decrement_lsn`` does.

        :raises OverflowError: below ten zero bytes, where SQL Server's own answer is not known
        """
        number = int.from_bytes(self.value) - 1
        if number < 0:
            raise OverflowError("no LSN below " + str(self))
        return Lsn(number.to_bytes(self.LENGTH))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Version(Position):
    """A sync version: how many transactions of a database have changed a table that Change Tracking tracks.

    0, before the first of them, is a position like any other.

    :param value: a ``bigint``, as drivers return it
    :raises ValueError: for any other number, or what is none
    """

    value: int

    LARGEST: ClassVar[int] = (1 << 63) - 1
    KIND: ClassVar[str] = "version"
    WORD: ClassVar[str] = "version"
    COLUMN_TYPE: ClassVar[str] = "BIGINT"

    def __post_init__(self) -> None:
        # True and 1.0 are equal to 1, and have another text
        if type(self.value) is not int or not 0 <= self.value <= self.LARGEST:
            raise ValueError(f"a version is a number from 0 to {self.LARGEST}, not {self.value!r}")

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read ``42``.

        :raises ValueError: for any other text: no sign, blank, or zero before the number
        """
        if not _VERSION_FORM.fullmatch(text):
            raise ValueError(f"not a version: {text!r}; expected a number such as 42")
        return cls(int(text))

    @property
    def text(self) -> str:
        """The number in decimal digits."""
        return str(self.value)

    @property
    def sort_key(self) -> int:
        """The number: the order of the text is another one."""
        return self.value

    def __str__(self) -> str:
        return f"version {self.value}"


KINDS: dict[str, type[Position]] = {Lsn.KIND: Lsn, Version.KIND: Version}
"""All kinds of positions by their name; a source with a kind of its own adds it."""


def position_of_kind(kind: str, text: str) -> Position:
    """Read a position.

    :raises ValueError: for an unknown kind, or a text that is none of this kind
    """
    if kind not in KINDS:
        raise ValueError(f"the kind {kind!r} is none of {', '.join(KINDS)}")
    return KINDS[kind].parse(text)


@dataclass(frozen=True, slots=True)
class Cut:
    """The position to which all tables of a run go: at most one of each kind.

    The text is the LSN's where the cut holds nothing else; otherwise the kinds with their positions, as in
    ``lsn=0x0000002D00000580001D,version=42``.

    :raises ValueError: for two positions of one kind, or none
    """

    positions: tuple[Position, ...]

    def __post_init__(self) -> None:
        kinds = [position.KIND for position in self.positions]
        if not kinds or len({*kinds}) < len(kinds):
            raise ValueError(f"a cut has one position of each kind, not {', '.join(kinds) or 'none'}")
        object.__setattr__(self, "positions", tuple(sorted(self.positions, key=lambda position: position.KIND)))

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Read the text.

        :raises ValueError: for any other text
        """
        if "=" not in text:
            return cls.at(Lsn.parse(text))
        pairs = (part.partition("=") for part in text.split(","))
        return cls(tuple(position_of_kind(kind, position) for kind, _, position in pairs))

    @classmethod
    def at(cls, position: Position) -> Cut:
        """The cut with this position alone."""
        return cls((position,))

    def of(self, kind: type[_P]) -> _P | None:
        """The position of a kind; None where the cut has none."""
        return next((position for position in self.positions if isinstance(position, kind)), None)

    def filled(self, other: Cut) -> Cut:
        """The same, with the positions of another cut of those kinds of which this one has none."""
        kinds = {position.KIND for position in self.positions}
        return Cut((*self.positions, *(position for position in other.positions if position.KIND not in kinds)))

    @property
    def text(self) -> str:
        """The form that JSON and XCom have."""
        if len(self.positions) == 1 and isinstance(self.positions[0], Lsn):
            return self.positions[0].text
        return ",".join(f"{position.KIND}={position.text}" for position in self.positions)

    def __iter__(self) -> Iterator[Position]:
        return iter(self.positions)

    def __str__(self) -> str:
        """The form for people."""
        return self.text


@dataclass(frozen=True, slots=True)
class Window:
    """All transactions whose position is above ``after`` and at most ``upto``.

    :raises ValueError: if ``after`` lies above ``upto``
    :raises TypeError: for two kinds of positions
    """

    after: Position
    upto: Position

    def __post_init__(self) -> None:
        if self.after > self.upto:
            raise ValueError(f"a window cannot end at {self.upto}, before its start {self.after}")

    @property
    def is_empty(self) -> bool:
        """Whether no position can lie in this window."""
        return self.after == self.upto

    def __contains__(self, position: Position) -> bool:
        return self.after < position <= self.upto

    def holds(self, other: Window) -> bool:
        """Whether all of another window lies in this one."""
        return self.after <= other.after and other.upto <= self.upto

    def __str__(self) -> str:
        return f"({self.after}, {self.upto}]"


def readable_from(min_lsn: Lsn | None) -> Lsn | None:
    """The position behind which a capture instance has all changes: the one before its min LSN.

    :param min_lsn: NULL, or ten zero bytes, while the instance shows none
    """
    return None if min_lsn is None or min_lsn.is_zero else min_lsn.previous()


def is_gap(after: _P, readable_from: _P | None) -> bool:
    """Whether changes behind a position were purged: the one rule of gaps.

    :param after: up to here all is loaded
    :param readable_from: the source has all changes behind this position; None while it has none that can be read
    """
    return readable_from is None or after < readable_from


def merged(windows: Sequence[Window]) -> list[Window]:
    """Windows that cover the same, in order, without overlap."""
    result: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.after, w.upto)):
        if result and window.after <= result[-1].upto:
            result[-1] = dataclasses.replace(result[-1], upto=max(result[-1].upto, window.upto))
        else:
            result.append(window)
    return result
