"""The grammar of CHANGETABLE and of WITH CHANGE_TRACKING_CONTEXT, beside sqlglot's."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

CHANGETABLE = "CHANGETABLE"
"""What the function in the place of a table is called."""

CONTEXT = "change_tracking_context"
"""Under which name the meta data of a statement's tree hold its context."""


_SCALARS = (exp.Literal, exp.Parameter, exp.Null, exp.Neg, exp.HexString, exp.National)


class ChangeTrackingGrammar:
    """What a parser of T-SQL reads of Change Tracking.

    CHANGETABLE becomes a table whose name is a call: of CHANGES with the table and the version, or of VERSION with the
    table, a tuple of columns and one of values.
    """

    def _parse_statement(self: Any) -> Any:
        if not self._match_text_seq("WITH", "CHANGE_TRACKING_CONTEXT", "("):
            return super()._parse_statement()  # type: ignore[misc]
        context = self._parse_disjunction()
        self._match_r_paren()
        common = self._parse_with(skip_with_token=True) if self._match(TokenType.COMMA) else None
        statement = super()._parse_statement()  # type: ignore[misc]
        if statement is None or context is None:
            self.raise_error("Expected a context and a statement")
        if common is not None:
            statement.set("with_", common)
        statement.meta[CONTEXT] = context
        return statement

    def _parse_table(self: Any, *args: Any, **kwargs: Any) -> Any:
        table = self._read_changetable()
        if table is None:
            return super()._parse_table(*args, **kwargs)  # type: ignore[misc]
        for join in self._parse_joins() if kwargs.get("joins") else ():
            table.append("joins", join)
        return table

    def _parse_lateral(self: Any) -> Any:
        start = self._index
        for word in (TokenType.CROSS, TokenType.OUTER):
            if self._match_pair(word, TokenType.APPLY):
                table = self._read_changetable()
                if table is not None:
                    return exp.Lateral(this=table, cross_apply=word is TokenType.CROSS)
                self._retreat(start)
        return super()._parse_lateral()  # type: ignore[misc]

    def _read_changetable(self: Any) -> Any:
        line = self._curr.line if self._curr else 1
        if not self._match_text_seq(CHANGETABLE, "("):
            return None
        if self._match_text_seq("CHANGES"):
            arguments = self._read_changes()
        elif self._match_text_seq("VERSION"):
            arguments = self._read_version()
        else:
            self.raise_error("Expected CHANGES or VERSION")
        self._match_r_paren()
        alias = self._parse_table_alias()
        if alias is None or not alias.this:
            raise SqlError.of(22104, line=line)
        return exp.Table(this=exp.Anonymous(this=CHANGETABLE, expressions=arguments), alias=alias)

    def _read_changes(self: Any) -> list[exp.Expr]:
        table = self._parse_table_parts()
        version = self._parse_unary() if self._match(TokenType.COMMA) else None
        if version is None:
            raise SqlError.of(22102)
        if not isinstance(version, _SCALARS):
            # docs: an expression causes a syntax error
            self.raise_error("Expected a literal or a variable")
        if self._match(TokenType.COMMA) and not self._match_text_seq("FORCESEEK"):
            raise SqlError.of(22102)
        return [exp.Var(this="CHANGES"), table, version]

    def _read_version(self: Any) -> list[exp.Expr]:
        table = self._parse_table_parts()
        columns = self._read_group() if self._match(TokenType.COMMA) else None
        values = self._read_group() if self._match(TokenType.COMMA) else None
        if not columns or not values:
            raise SqlError.of(22103)
        self._match_text_seq(",", "FORCESEEK")
        return [exp.Var(this="VERSION"), table, exp.Tuple(expressions=columns), exp.Tuple(expressions=values)]

    def _read_group(self: Any) -> list[exp.Expr] | None:
        if not self._match(TokenType.L_PAREN):
            return None
        found: list[exp.Expr] = self._parse_csv(self._parse_disjunction)
        self._match_r_paren()
        return found
