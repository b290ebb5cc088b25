"""Word sort: keys whose order is that of texts in Windows, level by level.

First the letters, digits and symbols of the whole text, without hyphens and apostrophes; then accents; then, where it
counts, case; and last where the hyphens and apostrophes stand (MS-UCODEREF, GetWindowsSortKey; docs: Handling Sorting
in Your Applications). Full-width characters are equal to the others (docs: collations without _WS), and blanks at the
end do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.collations.weights import ACCENTS, CHARACTERS

SEPARATOR = "\x01"
_UNKNOWN = "?"
_PLAIN = 2  # the second weight of a letter without an accent, and the third of one in lower case
_UPPER = 0x12
_LETTERS = 0x100
"""What stands for the first weights begins above the other levels, so that a text comes before those that go on."""
_SPECIAL_FIRST, _SPECIAL_STEP = 0x8007, 4
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_ENDS_OPENLY = re.compile("[ '\\-\u2013\u2014\u00ad]* [ '\\-\u2013\u2014\u00ad]*$")


@dataclass(frozen=True, slots=True)
class _Weight:
    """What a character weighs.

    :param first: one number for each letter that it stands for
    :param special: what counts last, for a character without other weights; 0 where there is none
    """

    first: tuple[int, ...]
    second: int = _PLAIN
    special: int = 0


class WordSort:
    """One table of weights.

    :param table: text of a table of ``weights``
    :param case: whether case counts
    """

    def __init__(self, table: str, *, case: bool) -> None:
        known = {c: _entry(text) for c, text in zip(CHARACTERS, table.split(), strict=True) if text != _UNKNOWN}
        numbers = sorted({weight for first, _, _ in known.values() for weight in first})
        rank = {number: _LETTERS + place for place, number in enumerate(numbers)}
        self._weights = {
            character: _Weight(tuple(rank[number] for number in first), second, special)
            for character, (first, second, special) in known.items()
        }
        self._case = case

    def first(self, character: str) -> str:
        """What stands for a character's first weights in keys."""
        return "".join(map(chr, self._weights[character].first))

    def key(self, text: str) -> str | None:
        """What compares, by code point, as a text does in SQL Server; None for one that is not simulated."""
        text = text.translate(_FULL_WIDTH).rstrip(" ")
        # whether a blank counts that only hyphens follow is not known
        if text.endswith(tuple("'-\u2013\u2014\u00ad")) and _ENDS_OPENLY.search(text):
            return None
        first: list[int] = []
        second: list[int] = []
        third: list[int] = []
        last: list[int] = []
        is_letter = False
        for character in text:
            if character in ACCENTS:
                if not is_letter:
                    return None
                second[-1] += ACCENTS[character]
                continue
            weight = self._weights.get(character)
            if weight is None:
                return None
            is_letter = character.isalpha()
            if weight.special:
                last += [_SPECIAL_FIRST + _SPECIAL_STEP * len(first), weight.special]
            first += weight.first
            second += [weight.second] * len(weight.first)
            third += [_UPPER if character.isupper() else _PLAIN] * len(weight.first)
        levels = [first, _trimmed(second), _trimmed(third) if self._case else [], last]
        return SEPARATOR.join("".join(map(chr, level)) for level in levels).rstrip(SEPARATOR)


def _trimmed(weights: list[int]) -> list[int]:
    while weights and weights[-1] == _PLAIN:
        weights.pop()
    return weights


def _entry(text: str) -> tuple[list[int], int, int]:
    """First weights, second weight and special weight of an entry."""
    if text == "-":
        return [], _PLAIN, 0
    if text.startswith("!"):
        return [], _PLAIN, int(text[1:], 16)
    letters, _, accent = text.partition("/")
    return [_number(part) for part in letters.split("+")], int(accent, 16) if accent else _PLAIN, 0


def _number(digits: str) -> int:
    """A first weight as two bytes: one of a single byte lies before those that go on from the same byte."""
    padded = "0" * (len(digits) % 2) + digits
    return int(padded.ljust(4, "0"), 16)
