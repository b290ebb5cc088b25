"""T-SQL statements into syntax trees: sqlglot's grammar, with functions left as they were written."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.changetable_grammar import ChangeTrackingGrammar
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import RESERVED, error_near, syntax_error, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.typing import named
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_KEPT_PARSERS = ("CAST", "TRY_CAST", "CONVERT", "TRY_CONVERT")


_COMPOUND: dict[str, tuple[TokenType, type[exp.Expr]]] = {
    # token types that the grammar of T-SQL has no other use for
    "+=": (TokenType.DOTCARET, exp.Add),
    "-=": (TokenType.DCOLONDOLLAR, exp.Sub),
    "*=": (TokenType.DCOLONPERCENT, exp.Mul),
    "/=": (TokenType.DCOLONQMARK, exp.Div),
}


def _compound(operator: type[exp.Expr]) -> Callable[..., exp.Expr]:
    """``a += b`` as ``a = a + (b)``."""

    def built(this: exp.Expr, expression: exp.Expr, **_: Any) -> exp.Expr:
        return exp.EQ(this=this, expression=operator(this=this.copy(), expression=exp.Paren(this=expression)))

    return built


class _Tokenizer(TSQL.Tokenizer):
    KEYWORDS: ClassVar[dict[str, Any]] = {
        **{text: token for text, token in TSQL.Tokenizer.KEYWORDS.items() if text not in ("LIMIT", "::")},
        **{text: token for text, (token, _) in _COMPOUND.items()},
        "USER": TokenType.CURRENT_USER,
        "SYSTEM_USER": TokenType.CURRENT_ROLE,  # the login, while CURRENT_USER is the user in the database
    }


class _Parser(ChangeTrackingGrammar, TSQL.Parser):  # type: ignore[misc, valid-type]
    # sqlglot's own function classes fold different T-SQL functions into one and so lose their types
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **{name: parser for name, parser in TSQL.Parser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS},
        "PARSE": lambda self: self._parse_parse(exp.Cast),
        "TRY_PARSE": lambda self: self._parse_parse(exp.TryCast),
    }

    COMPOUND: ClassVar[dict[Any, Any]] = {token: _compound(operator) for token, operator in _COMPOUND.values()}
    EQUALITY: ClassVar[dict[Any, Any]] = {**TSQL.Parser.EQUALITY, **COMPOUND}

    def _parse_parse(self, kind: type[exp.Expr]) -> Any:
        """PARSE(text AS type): a cast that is marked."""
        value = self._parse_disjunction()
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expected AS")
        parsed = kind(this=value, to=self._parse_types(), action=exp.Var(this="PARSE"))
        if self._match(TokenType.USING):
            raise unsupported("PARSE with a culture")
        return parsed

    def _parse_update_assignment(self) -> Any:
        target = self._parse_comparison()
        if self._match_set(self.COMPOUND):
            return self.COMPOUND[self._prev.token_type](target, self._parse_disjunction())
        return exp.EQ(this=target, expression=self._parse_disjunction()) if self._match(TokenType.EQ) else target

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        table = super()._parse_table_parts(*args, **kwargs)
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Parameter):
            # a table variable goes by its name with the mark, as a temporary table does
            table.set("this", exp.to_identifier(f"@{table.this.name}", quoted=True))
        elif isinstance(table, exp.Table):
            marks = [mark for mark, key in (("#", "temporary"), ("##", "global_")) if table.this.args.get(key)]
            if marks:
                table.this.set("this", marks[0] + table.this.name)
        return table

    def _parse_returning(self) -> Any:
        if not self._match(TokenType.RETURNING):
            return None
        clause = exp.Returning(expressions=self._parse_csv(self._parse_expression))
        if self._match(TokenType.INTO):
            clause.set("into", self._parse_schema(self._parse_table_parts(schema=True)))
        return clause

    def _limited(self, parse: Callable[[], Any]) -> Any:
        """A writing statement with its TOP, which the grammar lacks there."""
        top = self._parse_primary() if self._match_text_seq("TOP") else None
        statement = parse()
        if top is not None:
            statement.set("limit", top.this if isinstance(top, exp.Paren) else top)
        return statement

    def _parse_insert(self) -> Any:
        return self._limited(super()._parse_insert)

    def _parse_update(self) -> Any:
        return self._limited(super()._parse_update)

    def _parse_delete(self) -> Any:
        return self._limited(self._parse_deletion)

    def _parse_deletion(self) -> Any:
        # the first FROM may be left out, and a second one names other tables
        self._match(TokenType.FROM)
        statement = exp.Delete(this=self._parse_table())
        statement.set("returning", self._parse_returning())
        statement.set("from_", self._parse_from(joins=True))
        statement.set("where", self._parse_where())
        return statement

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        start = self._curr
        parsed = super()._parse_types(*args, **kwargs)
        if isinstance(parsed, exp.DataType) and start is not None:
            parsed.meta["name"] = start.text
        return parsed


class Dialect(TSQL):
    """T-SQL without sqlglot's normalisation of functions."""

    Parser = _Parser
    Tokenizer = _Tokenizer


def _named(text: str) -> str:
    """The text with the names of temporary tables in brackets, since the grammar would read a word in them."""
    parts, done = [], 0
    for token in tokenize(text):
        if token.kind == "word" and token.text.startswith("#"):
            parts += [text[done : token.start], f"[{token.text}]"]
            done = token.end
    return "".join(parts) + text[done:]


def _ends_too_early(text: str) -> bool:
    """Whether nothing is wrong with the last word of a statement, but that something must follow it."""
    try:
        trees = sqlglot.parse(f"{_named(text)} x", dialect=Dialect)
    except (ParseError, TokenError):
        return False
    return not any(_misplaced(node) for tree in trees if tree is not None for node in tree.walk())


# DEFAULT stands for a value, HOLDLOCK for a hint
_NAMED_WORDS = RESERVED - {"DEFAULT", "HOLDLOCK"}


def _misplaced(node: exp.Expr) -> str:
    """The reserved word that stands for a name without brackets, or where a name should be."""
    if isinstance(node, exp.Identifier) and not node.args.get("quoted") and node.name.upper() in _NAMED_WORDS:
        return node.name
    if isinstance(node, exp.From) and isinstance(node.this, exp.Select):
        return "FROM"  # the grammar reads FROM without SELECT as a query
    return ""


@functools.lru_cache(maxsize=512)
def parse(text: str, line: int = 1) -> exp.Expr:
    """One SELECT, INSERT, UPDATE or DELETE as a tree, which no one may change.

    :raises SqlError: 102, 105 or 156 with the line
    """
    try:
        trees = sqlglot.parse(_named(text) if "#" in text else text, dialect=Dialect)
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        near = str(detail.get("highlight") or "").strip()
        place = line + int(detail.get("line") or 1) - 1
        if text.rstrip().endswith(near) and _ends_too_early(text):
            raise SqlError.of(102, near, line=place) from None
        raise error_near(near, place) from None
    except TokenError:
        raise SqlError.of(105, "", line=line) from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlError.of(102, ";", line=line)
    for node in trees[0].walk():
        # the grammar lets some parts be left out that none of its trees can lack
        if isinstance(node, exp.Select) and not node.expressions:
            if node.args.get("from_"):
                raise error_near("FROM", line)
            raise SqlError.of(102, tokenize(text)[-2].text, line=line)
        if word := _misplaced(node):
            raise error_near(word, line)
        if any(needed and node.args.get(part) in (None, []) for part, needed in node.arg_types.items()):
            raise syntax_error(tokenize(text)[-2])
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
    if re.fullmatch(r"ntext|real|image|xml|text|sysname|sql_variant", written):
        name = written
    arguments = [parameter.this.name for parameter in node.expressions]
    return named(name, arguments, default_length=default_length)
