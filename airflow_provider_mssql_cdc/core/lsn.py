"""The log sequence number (LSN): a position in SQL Server's transaction log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

_HEX_FORM = re.compile(r"0[xX]([0-9a-fA-F]{20})")
_COLON_FORM = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})")
_LARGEST = (1 << 80) - 1


@dataclass(frozen=True, slots=True, order=True)
class Lsn:
    """Ten bytes, compared unsigned. The text form is ``0x`` and 20 upper-case hex digits, whose order is LSN order.

    :param value: the ten bytes of a ``binary(10)``, as drivers return them
    :raises ValueError: for any other length
    """

    value: bytes

    LENGTH: ClassVar[int] = 10
    KIND: ClassVar[str] = "lsn"

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
    def is_zero(self) -> bool:
        """Whether this is what SQL Server answers for an unknown or unauthorised capture instance."""
        return not any(self.value)

    def next(self) -> Lsn:
        """Return the LSN one above, as ``sys.fn_cdc_increment_lsn`` does.

        :raises OverflowError: above ten 0xFF bytes, where SQL Server's own answer is not known
        """
        number = int.from_bytes(self.value) + 1
        if number > _LARGEST:
            raise OverflowError("no LSN above " + str(self))
        return Lsn(number.to_bytes(self.LENGTH))

    def previous(self) -> Lsn:
        """Return the LSN one below, as ``sys.fn_cdc_decrement_lsn`` does.

        :raises OverflowError: below ten zero bytes, where SQL Server's own answer is not known
        """
        number = int.from_bytes(self.value) - 1
        if number < 0:
            raise OverflowError("no LSN below " + str(self))
        return Lsn(number.to_bytes(self.LENGTH))

    def __str__(self) -> str:
        return "0x" + self.value.hex().upper()
