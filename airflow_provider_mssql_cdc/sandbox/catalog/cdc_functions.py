"""The functions of CDC: sys.fn_cdc_..."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox.catalog import changes
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.operators import choice, compare
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIT, DATETIME, INT, LSN, nvarchar, varbinary
from airflow_provider_mssql_cdc.sandbox.tsql.unfinished_reads import changes_of

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_TEXT = nvarchar(4000)
_LSNS = 1 << 80


def values_of(env: Environment, arguments: list[Expr], what: str) -> list[Any]:
    """The values of arguments, which must not depend on rows."""
    values = []
    for argument in arguments:
        if not argument.constant:
            raise unsupported(f"{what} with an argument that depends on rows")
        values.append(env.evaluate(argument))
    return values


def texts_of(env: Environment, arguments: list[Expr], what: str) -> list[Any]:
    """The values of arguments that are names and other words: whatever is given is converted to a text."""
    texts = [Expr(each.to(_TEXT), _TEXT, constant=each.constant) for each in arguments]
    return values_of(env, texts, what)


def _max_lsn(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    return constant(changes_of(env, database, "lsn_time_mapping").max_lsn(), LSN)


def _min_lsn(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    cdc = changes_of(env, database, "change_tables")

    def known(name: str | None) -> bytes | None:
        instance = cdc.instance(name)
        hidden = instance is not None and not changes.may_read_changes(env, database, instance)
        return cdc.min_lsn("" if hidden else name)

    if arguments[0].constant:
        return constant(known(texts_of(env, arguments, "fn_cdc_get_min_lsn")[0]), LSN)
    names = [each.capture_instance for each in cdc.instances]
    branches = [(_same(arguments[0], name), constant(known(name), LSN)) for name in names]
    return choice(branches, constant(known(""), LSN), is_constant=False) if names else constant(known(""), LSN)


def _same(given: Expr, name: str) -> str:
    return compare("=", Expr(given.to(_TEXT), _TEXT), constant(name, _TEXT))


def _moved(step: int) -> Callable[[Environment, Database, list[Expr]], Expr]:
    def function(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
        given = arguments[0]
        if given.constant:
            value = changes.lsn_argument(env.evaluate(given))
            moved = database.cdc.increment_lsn(value) if step > 0 else database.cdc.decrement_lsn(value)
            return constant(moved, LSN)
        after = f"(t_number_of_lsn({given.to(LSN)}) + ({step}))"
        if database.cdc.switches.lsn_wraps:
            return Expr(f"t_lsn(({after} + {_LSNS}) % {_LSNS})", LSN)
        return Expr(f"CASE WHEN {after} BETWEEN 0 AND {_LSNS - 1} THEN t_lsn({after}) END", LSN)

    return function


def _lsn_to_time(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    given, cdc = arguments[0], changes_of(env, database, "lsn_time_mapping")
    if given.constant:
        return constant(cdc.map_lsn_to_time(changes.lsn_argument(env.evaluate(given))), DATETIME)
    _, rows = cdc.relation("lsn_time_mapping")
    name = env.register(rows.select(["start_lsn", "tran_end_time"]))
    sql = f"(SELECT m.tran_end_time FROM {name} AS m WHERE m.start_lsn = {given.to(LSN)})"
    return Expr(sql, DATETIME)


def _time_to_lsn(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    moment = Expr(arguments[1].to(DATETIME), DATETIME, constant=arguments[1].constant)
    (operator,) = texts_of(env, arguments[:1], "fn_cdc_map_time_to_lsn")
    (time,) = values_of(env, [moment], "fn_cdc_map_time_to_lsn")
    return constant(changes_of(env, database, "lsn_time_mapping").map_time_to_lsn(operator, time), LSN)


def _column_ordinal(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    (instance, column), cdc = arguments[:2], changes_of(env, database)
    if instance.constant and column.constant:
        return constant(cdc.column_ordinal(*texts_of(env, arguments[:2], "fn_cdc_get_column_ordinal")), INT)
    branches = [
        (f"{_same(instance, each.capture_instance)} AND {_same(column, captured.name)}", constant(ordinal, INT))
        for each in cdc.instances
        for ordinal, captured in enumerate(each.columns, 1)
    ]
    return choice(branches, constant(None, INT), is_constant=False) if branches else constant(None, INT)


def _bit_sql(position: str, mask: str) -> str:
    digits = f"hex({mask})"
    byte = f"('0x' || substr({digits}, 2 * (octet_length({mask}) - ({position} - 1) // 8) - 1, 2))::INTEGER"
    inside = f"{position} >= 1 AND ({position} - 1) // 8 < octet_length({mask})"
    bit = f"(({byte} >> (({position} - 1) % 8)::INTEGER) & 1) = 1"
    return f"CASE WHEN {mask} IS NULL OR {position} IS NULL THEN NULL WHEN {inside} THEN {bit} ELSE FALSE END"


def _is_bit_set(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    constant_ = all(argument.constant for argument in arguments)
    return Expr(_bit_sql(arguments[0].to(INT), arguments[1].to(varbinary(128))), BIT, constant=constant_)


def _has_column_changed(env: Environment, database: Database, arguments: list[Expr]) -> Expr:
    ordinal, mask = _column_ordinal(env, database, arguments[:2]), arguments[2]
    return Expr(_bit_sql(ordinal.sql, mask.to(varbinary(128))), BIT, constant=ordinal.constant and mask.constant)


CDC_FUNCTIONS: dict[str, Callable[[Any, Any, list[Expr]], Expr]] = {
    "fn_cdc_get_max_lsn": _max_lsn,
    "fn_cdc_get_min_lsn": _min_lsn,
    "fn_cdc_increment_lsn": _moved(1),
    "fn_cdc_decrement_lsn": _moved(-1),
    "fn_cdc_map_lsn_to_time": _lsn_to_time,
    "fn_cdc_map_time_to_lsn": _time_to_lsn,
    "fn_cdc_get_column_ordinal": _column_ordinal,
    "fn_cdc_is_bit_set": _is_bit_set,
    "fn_cdc_has_column_changed": _has_column_changed,
}
