"""Table patterns as users write them (``sales.*``, ``[a.b].[c]``), and as SQL Server's LIKE takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import ParameterError

ESCAPE = "\\"
_PART = re.compile(r"""\[(?P<bracket>(?:[^\]]|\]\])+)\]|"(?P<quote>(?:[^"]|"")+)"|(?P<plain>[^\s.\[\]"]+)""")
_SPECIAL = re.compile(r"([\\%_\[])")
_ESCAPED = re.compile(r"\\.", re.DOTALL)


class PatternError(ParameterError):
    """A table pattern cannot be read."""


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A pattern for schema and table, each in the form of LIKE with ``\\`` as escape character.

    :param text: as the user wrote it
    :param schema: None stands for the login's default schema
    """

    text: str
    schema: str | None
    table: str

    @property
    def names_one(self) -> bool:
        """Whether it names one table, without ``*``."""
        return "%" not in _ESCAPED.sub("", f"{self.schema or ''}.{self.table}")

    @property
    def parts(self) -> tuple[str | None, str]:
        """Schema and table as a pattern that names one table spells them."""
        schema, table = (part and _ESCAPED.sub(lambda found: found[0][1], part) for part in (self.schema, self.table))
        return schema, table or ""


def matches(pattern: TablePattern, schema: str, table: str) -> bool:
    """Whether a pattern matches a name that the server did not compare: without regard to case.

    One without a schema counts for each.
    """
    wanted = ((pattern.schema, schema), (pattern.table, table))
    return all(
        part is None or re.fullmatch(_regex(part.casefold()), name.casefold(), re.DOTALL) for part, name in wanted
    )


def _regex(like: str) -> str:
    parts = re.findall(r"\\.|%|[^\\%]+", like, re.DOTALL)
    return "".join(".*" if part == "%" else re.escape(part.removeprefix(ESCAPE)) for part in parts)


def parse_pattern(text: str) -> TablePattern:
    """Read ``table`` or ``schema.table``, where ``*`` stands for any characters, and ``[..]`` or double quotes enclose
    names that hold dots, brackets, blanks or a literal ``*``.

    :raises PatternError: if there are more than two parts, an empty part, or an unbalanced quote
    """
    source = text.strip()
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(source, at)
        if match is None:
            raise _unreadable(text, at)
        parts.append(_like(match))
        at = match.end()
        if at == len(source):
            break
        if source[at] != ".":
            raise _unreadable(text, at)
        at += 1
    if len(parts) > 2:
        raise PatternError(
            f"table pattern {text!r} has {len(parts)} parts.",
            advice="The database is the connection's; write schema.table.",
        )
    return TablePattern(text, parts[0] if len(parts) == 2 else None, parts[-1])


def parse_name(text: str) -> TablePattern:
    """Read the name of one table, written as a pattern is, but without ``*``.

    :raises PatternError: if it cannot be read, or may stand for several tables
    """
    pattern = parse_pattern(text)
    if not pattern.names_one:
        raise PatternError(f"{text!r} is to name one table.", advice="Write schema.table, without *.")
    return pattern


def literal(schema: str, table: str) -> TablePattern:
    """The pattern that matches this table alone."""
    return TablePattern(f"{schema}.{table}", _escaped(schema), _escaped(table))


def _like(match: re.Match[str]) -> str:
    if match["bracket"]:
        return _escaped(match["bracket"].replace("]]", "]"))
    if match["quote"]:
        return _escaped(match["quote"].replace('""', '"'))
    return _escaped(match["plain"]).replace("*", "%")


def _escaped(name: str) -> str:
    return _SPECIAL.sub(r"\\\1", name)


def _unreadable(text: str, at: int) -> PatternError:
    return PatternError(
        f"table pattern {text!r} is not readable at character {at + 1}.",
        advice="Write schema.table, with [brackets] around names that hold dots, blanks or brackets.",
    )
