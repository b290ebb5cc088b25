"""Texts of which some collation of SQL Server may take two for equal, brought to one form: more than are equal."""

from __future__ import annotations

import functools
import re
import unicodedata

from pyspark.sql import Column
from pyspark.sql import functions as F

ALIKE = "UNICODE_CI_AI_RTRIM"
"""Compares folded texts: without case, accents, width, and blanks at the end."""

_NOTHING = "[\\x{10000}-\\x{10FFFF}\\p{Mn}\\p{Cf}\\p{Cn}\\p{Cc}]"
"""Marks, what shows nothing, and what older collations do not see: all beyond the first plane."""

_LATIN = re.compile(r"LATIN (?:SMALL |CAPITAL )?LETTER ([A-Z]{1,2})(?: WITH .*)?")
_OTHERS = {"ß": "ss", "þ": "th", "ð": "d", "ı": "i", "œ": "oe"}
_RULES = (
    # German, Danish
    ("([aou])e+", "$1"),
    # Turkish, Lithuanian, Finnish, Swedish
    ("[uy]", "i"),
    ("w", "v"),
    # Danish (aa), Hungarian (ccs is cscs)
    ("([a-z])\\1+", "$1"),
    ("(dzs|cs|dz|gi|li|ni|sz|ti|zs)\\1+", "$1"),
)
"""What some collation takes for another text, in letters without marks, and what stands for it: one after the other."""


def folded(text: Column) -> Column:
    """A text without what makes no difference under some collation. Two that are equal under one are ``ALIKE`` then."""
    text = F.lower(text)
    one, to, several = _letters()
    plain = F.translate(F.regexp_replace(text, _NOTHING, ""), one, to)
    for letters, characters in several.items():
        plain = F.regexp_replace(plain, f"[{characters}]", letters)
    text = F.when(text.rlike("[^\\x20-\\x7E]"), plain).otherwise(text)
    for pattern, letters in _RULES:
        text = F.regexp_replace(text, pattern, letters)
    return text


@functools.cache
def _letters() -> tuple[str, str, dict[str, str]]:
    """Small letters of the first plane, what stands for each of them without its mark, width or stroke, and, by what
    stands for them, those for which several letters do.
    """
    one: dict[str, str] = {}
    nothing, several = "", dict[str, str]()
    for character in map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x10000)]):
        if unicodedata.category(character) in ("Cn", "Co", "Mn", "Cf", "Cc") or character.lower() != character:
            continue
        plain = _plain(character)
        if not plain:
            nothing += character
        elif len(plain) == 1 and plain != character:
            one[character] = plain
        elif plain.isascii() and plain.isalpha():
            several[plain] = several.get(plain, "") + character
    # what has no counterpart goes (docs: translate)
    return "".join(one) + nothing, "".join(one.values()), several


def _plain(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character).lower()
    return "".join(_base(part) for part in parts if unicodedata.category(part) not in ("Mn", "Cf"))


def _base(character: str) -> str:
    found = None if character.isascii() else _LATIN.fullmatch(unicodedata.name(character, ""))
    return _OTHERS.get(character) or (found[1].lower() if found else character)
