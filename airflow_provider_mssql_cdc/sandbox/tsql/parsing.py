"""T-SQL statements into syntax trees: sqlglot's grammar, with functions left as they were written."""

from __future__ import annotations

import functools
import re
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ParseError, TokenError

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.typing import named
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_KEPT_PARSERS = ("CAST", "TRY_CAST", "CONVERT", "TRY_CONVERT")


class _Parser(TSQL.Parser):  # type: ignore[misc, valid-type]
    # sqlglot's own function classes fold different T-SQL functions into one and so lose their types
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in TSQL.Parser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS
    }

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        start = self._curr
        parsed = super()._parse_types(*args, **kwargs)
        if isinstance(parsed, exp.DataType) and start is not None:
            parsed.meta["name"] = start.text
        return parsed


class Dialect(TSQL):
    """T-SQL without sqlglot's normalisation of functions."""

    Parser = _Parser


@functools.lru_cache(maxsize=512)
def parse(text: str, line: int = 1) -> exp.Expr:
    """One SELECT, INSERT, UPDATE or DELETE as a tree, which no one may change.

    :raises SqlError: 102 with the line
    """
    try:
        trees = sqlglot.parse(text, dialect=Dialect)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        near = str(detail.get("highlight") or "").strip()
        raise SqlError(
            102, f"Incorrect syntax near '{near}'.", severity=15, line=line + int(detail.get("line") or 1) - 1
        ) from None
    except TokenError:
        raise SqlError(105, "Unclosed quotation mark after the character string.", severity=15, line=line) from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlError(102, "Incorrect syntax near ';'.", severity=15, line=line)
    return trees[0]


_SIMPLE_NAMES = {"UTINYINT": "tinyint", "TIMESTAMPTZ": "datetimeoffset", "UUID": "uniqueidentifier"}


def sql_type(node: exp.DataType, default_length: int) -> SqlType:
    """A type as written in CAST or CONVERT."""
    if node.this is exp.DType.USERDEFINED:
        return named(str(node.args.get("kind")), [])
    if node.this is exp.DType.DOUBLE:
        return named("float", [])
    written = str(node.meta.get("name", "")).lower()
    name = _SIMPLE_NAMES.get(node.this.name, node.this.name.lower())
    if re.fullmatch(r"ntext|real|image|xml|text|sysname", written):
        name = written
    arguments = [parameter.this.name for parameter in node.expressions]
    if any(not argument.isdigit() and argument.lower() != "max" for argument in arguments):
        raise unsupported(f"the type {node.sql(dialect='tsql')}")
    return named(name, arguments, default_length=default_length)
