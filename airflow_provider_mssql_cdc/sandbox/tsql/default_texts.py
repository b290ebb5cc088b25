"""The text of a DEFAULT as the catalogue shows it: decoded from what the server understood, not as it was written."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.dates import part_of
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse, sql_type
from airflow_provider_mssql_cdc.sandbox.tsql.typing import display

_OPERATORS: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip
_WITH_PART = frozenset({"dateadd", "datediff", "datediff_big", "datename", "datepart"})
_LARGEST_INT = 2**31 - 1


def decoded(written: str) -> str:
    """A DEFAULT as sys.default_constraints has it: ``((7))``, ``('x')``, ``(getdate())``.

    The docs say that the text means the same and has lost its blanks; its forms are those of published scripts.

    :raises SqlError: 50000 for forms of which it is not known how a server shows them
    """
    return f"({_shown(_inner(parse(f'SELECT {written}').expressions[0]))})"


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _shown(node: Any) -> str:
    if type(node) in _OPERATORS:
        left, right = (_operand(each, beside=_rank(node)) for each in (node.this, node.expression))
        return f"{left}{_OPERATORS[type(node)]}{right}"
    shown = _FORMS.get(type(node))
    if shown is None:
        raise unsupported(f"a DEFAULT with {node.sql(dialect='tsql')[:100]}")
    return shown(node)


def _rank(node: exp.Expr) -> int:
    """How loosely an operator binds; 0 for what is none (docs: operator precedence)."""
    return 0 if type(node) not in _OPERATORS else 1 if isinstance(node, exp.Mul | exp.Div | exp.Mod) else 2


def _operand(node: exp.Expr, *, beside: int) -> str:
    """One side of an operator: ``(((1)/(1))/(1999))`` is what became of 1/1/1999."""
    inner = _inner(node)
    return f"({_shown(inner)})" if _rank(inner) >= beside else _shown(inner)


def _literal(node: exp.Expr) -> str:
    return _string(node) if node.args["is_string"] else f"({_number(node.name, '')})"


def _string(node: exp.Expr) -> str:
    quoted = node.name.replace("'", "''")
    return f"'{quoted}'"


def _number(written: str, sign: str) -> str:
    if "e" in written.lower():
        digits, _, exponent = f"{float(written):.16e}".partition("e")
        return f"{sign}{digits}e{int(exponent):+04d}"
    value = Decimal(written)
    largest = _LARGEST_INT + 1 if sign else _LARGEST_INT
    is_int = "." not in written and value <= largest
    return f"{sign}{value:f}{'' if is_int or '.' in f'{value:f}' else '.'}"


def _negative(node: exp.Expr) -> str:
    inner = _inner(node.this)
    if isinstance(inner, exp.Literal) and not inner.args["is_string"]:
        return f"({_number(inner.name, '-')})"
    return f"-{_operand(node.this, beside=1)}"


def _call(node: exp.Expr) -> str:
    name, arguments = node.name.lower(), list(node.expressions)
    parts = [part_of(arguments.pop(0))] if name in _WITH_PART and arguments else []
    return f"{name}({','.join([*parts, *(_shown(_inner(each)) for each in arguments)])})"


def _column(node: exp.Expr) -> str:
    if node.name.lower() != "0x":
        raise unsupported(f"a DEFAULT with {node.name}")
    return "0x"  # the grammar takes no bytes for a name


def _cast(node: exp.Expr) -> str:
    if node.args.get("action"):
        raise unsupported("a DEFAULT with PARSE")
    return _conversion(node.args["to"], node.this, None)


def _conversion(to: exp.DataType, value: exp.Expr, style: exp.Expr | None) -> str:
    type_ = sql_type(to, 30)
    name = type_.declared or "decimal" if type_.name == "decimal" else display(type_)
    length = f"({','.join(each.this.name.lower() for each in to.expressions)})" if to.expressions else ""
    parts = [f"[{name}]{length}", _shown(_inner(value)), *([_shown(_inner(style))] if style is not None else [])]
    return f"CONVERT({','.join(parts)})"


_FORMS: dict[type, Callable[[Any], str]] = {
    exp.Literal: _literal,
    exp.National: lambda node: f"N{_string(node)}",
    exp.HexString: lambda node: f"0x{node.name}",
    exp.Column: _column,
    exp.Null: lambda node: "NULL",
    exp.Neg: _negative,
    exp.Anonymous: _call,
    exp.Cast: _cast,
    exp.Convert: lambda node: _conversion(node.this, node.args["expression"], node.args.get("style")),
    exp.CurrentTimestamp: lambda node: "getdate()",
    exp.CurrentRole: lambda node: "suser_sname()",
    exp.CurrentUser: lambda node: "user_name()",
    exp.SessionUser: lambda node: "user_name()",
}
