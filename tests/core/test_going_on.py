"""With which columns a sink goes on whose source table has changed: the types that targets follow, those that alter no
value and those whose values are read again, and what is made of it."""

import contextlib
import dataclasses
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.entry_values import FAIL
from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.going_on import Followed, as_before, followed, follows, goes_on_with
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_change import check_ddl, check_statements, statements_since, with_hidden
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from tests.core.test_schema import columns, schemas

LATIN, OTHER = "Latin1_General_CI_AS", "Latin1_General_BIN2"
NAMES = ("tinyint", "smallint", "int", "bigint")
RANGES = ((0, 255), (-(2**15), 2**15 - 1), (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1))

types = st.one_of(
    st.sampled_from(NAMES).map(lambda name: {"type": name}),
    st.tuples(st.sampled_from(["decimal", "numeric"]), st.integers(1, 6), st.integers(0, 3))
    .filter(lambda drawn: drawn[2] <= drawn[1])
    .map(lambda drawn: {"type": drawn[0], "precision": drawn[1], "scale": drawn[2], "length": 5 + drawn[1] // 3}),
    st.sampled_from(["real", "float"]).map(lambda name: {"type": name}),
    st.tuples(st.sampled_from(["varchar", "nvarchar", "char", "nchar"]), st.sampled_from([-1, 2, 4, 8])).map(
        lambda drawn: {"type": drawn[0], "length": drawn[1], "collation": LATIN}
    ),
    st.just({"type": "varchar", "length": 8, "collation": OTHER}),
    st.tuples(st.sampled_from(["varbinary", "binary"]), st.sampled_from([-1, 2, 4])).map(
        lambda drawn: {"type": drawn[0], "length": drawn[1]}
    ),
    st.just({"type": "int", "computed": True}),
    st.just({"type": "datetime2", "scale": 7}),
    st.sampled_from(["date", "datetime", "datetime2", "uniqueidentifier", "bit", "money"]).map(lambda n: {"type": n}),
)


def holds(facts: dict, value: object) -> bool:
    """Whether a type has exactly this value."""
    name = facts["type"]
    if name in NAMES:
        low, high = RANGES[NAMES.index(name)]
        return isinstance(value, int) and low <= value <= high
    if name in ("decimal", "numeric"):
        digits, scale = facts["precision"], facts["scale"]
        return (
            isinstance(value, Decimal) and -value.as_tuple().exponent == scale and abs(value) < 10 ** (digits - scale)
        )
    return isinstance(value, str | bytes) and len(value) <= facts["length"]


def values(facts: dict) -> list[object]:
    """The values of a type that another one loses first."""
    name = facts["type"]
    if name in NAMES:
        return [*RANGES[NAMES.index(name)]]
    if name in ("decimal", "numeric"):
        return [Decimal((sign, (9,) * facts["precision"], -facts["scale"])) for sign in (0, 1)]
    return ["x" * facts["length"]] if name.endswith("char") else [b"x" * facts["length"]]


def model(then: dict, now: dict) -> bool:
    """Whether targets may follow, said by the values themselves."""
    if then == now or then.get("computed") or now.get("computed") or then.get("collation") != now.get("collation"):
        return False
    kinds = (NAMES, ("decimal",), ("numeric",), ("varchar",), ("nvarchar",), ("varbinary",))
    if then["type"] == "real" and now["type"] == "float":
        return True
    if not any(then["type"] in kind and now["type"] in kind for kind in kinds):
        return False
    if -1 in (then.get("length"), now.get("length")):
        return False
    return all(holds(now, value) for value in values(then))


def held_as(facts: dict) -> object:
    """How targets hold a type."""
    name = facts["type"]
    if name in ("char", "varchar", "nchar", "nvarchar", "uniqueidentifier"):
        return "text"
    if name in ("binary", "varbinary"):
        return "bytes"
    if name in ("decimal", "numeric", "money"):
        return "decimal", *((19, 4) if name == "money" else (facts["precision"], facts["scale"]))
    return {"tinyint": "two bytes", "smallint": "two bytes", "datetime": "time", "datetime2": "time"}.get(name, name)


def has_more_digits(facts: dict) -> bool:
    """Whether targets have a further column, for the text of a time."""
    return facts["type"] == "datetime2" and facts.get("scale") == 7


def read_again(then: dict, now: dict) -> bool:
    """Whether targets hold both alike, and what is held is to be read again."""
    if then.get("computed") or now.get("computed") or model(then, now) or -1 in (then.get("length"), now.get("length")):
        return False
    return then != now and held_as(then) == held_as(now) and has_more_digits(then) <= has_more_digits(now)


def schema(*facts: dict, key: tuple[str, ...] = ("c1",)) -> TableSchema:
    return TableSchema(tuple(Column(n, n, f"c{n}", **each) for n, each in enumerate(facts, 1)), key)


@given(st.lists(st.tuples(types, types), min_size=1, max_size=4))
def test_a_sink_follows_where_its_columns_hold_the_type_of_now(pairs):
    then, now = (schema(*(pair[n] for pair in pairs)) for n in (0, 1))
    loaded = KeptSchema.of(then)
    changed = [n for n, (was, is_) in enumerate(pairs, 1) if was != is_]
    # another value of the key would be another row
    anew = [n for n in changed if n > 1 and read_again(*pairs[n - 1])]
    may = [n for n in changed if n in anew or model(*pairs[n - 1])]
    assert {name: each.anew for name, each in followed(loaded, now).items()} == {f"c{n}": n in anew for n in may}
    everything = may == changed
    assert follows(now, loaded.hash, loaded, widens=FAIL) == everything
    assert follows(now, loaded.hash, loaded, widens="") == (not changed)
    assert goes_on_with(now, loaded, widens=FAIL) == (now if everything else None)
    assert goes_on_with(now, loaded) == (None if changed else now)
    assert (as_before(now, loaded).hash == loaded.hash) == everything


def test_it_follows_in_the_columns_that_it_has():
    then = schema({"type": "int"}, {"type": "varchar", "length": 4, "nullable": False}, {"type": "date"})
    now = schema(
        {"type": "bigint"},
        {"type": "varchar", "length": 9},
        {"type": "date", "dropped": True},
        {"type": "int"},
    )
    found = goes_on_with(now, KeptSchema.of(then), widens=FAIL)
    assert [(c.name, c.type, c.length, c.nullable, c.kept) for c in found.columns] == [
        ("c1", "bigint", 0, True, False),
        ("c2", "varchar", 9, False, False),
        ("c3", "date", 0, True, True),
    ]
    assert as_before(found, KeptSchema.of(then)).hash == then.hash


def statement(number: int, text: str, *, alters: bool = True) -> DdlChange:
    return DdlChange("dbo_a", text, Lsn(bytes([number] * 10)), None, requires_column_update=alters)


@given(
    st.lists(st.sampled_from(["id", "c2", "C3", "my col", "elsewhere"]), max_size=4),
    st.dictionaries(st.sampled_from(["c2", "c3"]), st.booleans()),
)
def test_where_a_statement_may_have_hidden_another_one_what_they_name_is_read_again(named, differing):
    """decimal(10,4) to decimal(10,2) and back again leaves no difference, and has rounded."""
    names = ("id", "c2", "c3", "my col")
    now = TableSchema(tuple(Column(n, n, name, "int") for n, name in enumerate(names, 1)), ("id",))
    facts = {each.name: each for each in KeptSchema.of(now).columns}
    types_ = {name: Followed(dataclasses.replace(facts[name], type="bit"), anew) for name, anew in differing.items()}
    ddl = [statement(n, f"ALTER TABLE dbo.t ALTER COLUMN [{name}] bigint") for n, name in enumerate(named, 1)]
    found = with_hidden(types_, ddl, now)
    # the model: each statement is explained by a column that differs and that they name, or all that they name are read
    # again; what altered another one, only an instance knew that is gone
    explained = len(named) <= len({name for name in differing if name in {each.casefold() for each in named}})
    again = {name for name, anew in differing.items() if anew}
    if not explained:
        again |= {name for name in names[1:] if name.casefold() in {each.casefold() for each in named}}
    assert {name for name, each in found.items() if each.anew} == again
    assert found.keys() == differing.keys() | again
    refused = not explained and not {name.casefold() for name in named} <= {name.casefold() for name in again}
    with pytest.raises(SchemaChangedError, match="ALTER COLUMN") if refused else contextlib.nullcontext():
        check_statements(TableName("dbo", "t"), ddl, found, now)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=5), st.integers(0, 9), st.none() | st.integers(0, 9)
)
def test_the_statements_count_that_came_since_a_sink_was_loaded(made, after, known):
    ddl = [statement(number, f"ALTER {number}", alters=alters) for number, alters in made]
    upto = None if known is None else Lsn(bytes([known] * 10))
    since = statements_since(ddl, Lsn(bytes([after] * 10)), upto)
    assert [each.command for each in since] == [
        f"ALTER {n}" for n, alters in made if alters and n > max(after, known or 0)
    ]


def test_a_load_that_follows_no_types_refuses_a_window_with_such_a_statement():
    ddl = [statement(1, "ALTER 1"), statement(2, "ALTER 2", alters=False), statement(3, "ALTER 3")]
    for after, upto, refused in ((0, 1, True), (1, 2, False), (1, 3, True), (3, 9, False)):
        with pytest.raises(SchemaChangedError) if refused else contextlib.nullcontext():
            check_ddl(TableName("dbo", "a"), ddl, Lsn(bytes([after] * 10)), Lsn(bytes([upto] * 10)))


@given(schemas, st.data())
def test_a_sink_goes_on_with_columns_that_were_dropped_or_may_be_null_now(loaded, data):
    others = [column for column in loaded.columns if column.name not in loaded.key]
    some = st.sets(st.sampled_from(others)) if others else st.just(set())
    gone, other = data.draw(some, label="dropped"), data.draw(some, label="with another nullability")
    # the change table tells nothing of what the source's catalogue alone had
    forgotten = {"dropped": True, "nullable": True, "collation": None, "computed": False}

    def then_and_now(column):
        if column in gone:
            return dataclasses.replace(column, **forgotten)
        return dataclasses.replace(column, nullable=column.nullable != (column in other))

    # a second instance has more columns, and those of both in another order
    ids, names_ = {c.column_id for c in loaded.columns}, {c.name for c in loaded.columns}
    more = data.draw(st.lists(columns(), max_size=3, unique_by=lambda column: column.column_id), label="added")
    added = [column for column in more if column.column_id not in ids and column.name not in names_]
    there = data.draw(st.permutations([*map(then_and_now, loaded.columns), *added]))
    now = dataclasses.replace(loaded, columns=tuple(there))
    found = goes_on_with(now, KeptSchema.of(loaded))
    assert found.hash == loaded.hash
    assert sorted(found.kept) == sorted(c.name for c in loaded.columns if c in gone and not c.computed)
    in_order = sorted(found.columns, key=lambda column: column.column_id)
    assert [dataclasses.replace(column, kept=False) for column in in_order] == list(loaded.columns)
    assert goes_on_with(now, None) is None

    # what else changed counts, and so does whether a column by which copies are cut may be NULL
    column = data.draw(st.sampled_from(loaded.columns), label="longer")
    also = dataclasses.replace(column, length=column.length + 1, dropped=False)
    changed = tuple(also if each.column_id == column.column_id else each for each in now.columns)
    altered = dataclasses.replace(now, columns=changed)
    assert goes_on_with(altered, KeptSchema.of(loaded)) is None
    for column in other - gone:
        may_be_null_now = not column.nullable
        assert (goes_on_with(now, KeptSchema.of(loaded), (column.name,)) is None) == may_be_null_now


def test_columns_that_count_may_be_spelled_in_another_case():
    columns = [Column(1, 1, "id", "int", 4, 10, nullable=False), Column(2, 2, "Region", "int", 4, 10, nullable=False)]
    now = TableSchema((columns[0], dataclasses.replace(columns[1], nullable=True)), ("id",))
    loaded = KeptSchema.of(TableSchema(tuple(columns), ("id",)))
    assert goes_on_with(now, loaded, ("region",)) is None
    assert goes_on_with(now, loaded).hash == loaded.hash


def test_a_computed_column_that_is_dropped_was_in_no_target():
    columns = [Column(1, 1, "id", "int", 4, 10), Column(2, 2, "total", "int", 4, 10, computed=True)]
    loaded = TableSchema(tuple(columns), ("id",))
    now = TableSchema((columns[0], dataclasses.replace(columns[1], computed=False, dropped=True)), ("id",))
    found = goes_on_with(now, KeptSchema.of(loaded))
    assert (found.hash, found.kept) == (loaded.hash, ())


def test_whether_the_key_may_be_null_counts():
    key = Column(1, 1, "id", "int", 4, 10, nullable=False)
    loaded = TableSchema((key,), ("id",))
    now = TableSchema((dataclasses.replace(key, nullable=True),), ("id",))
    assert goes_on_with(now, KeptSchema.of(loaded)) is None
    # what may be NULL no longer is as good as before
    assert goes_on_with(loaded, KeptSchema.of(now)).hash == now.hash


def test_a_column_that_neither_source_nor_change_table_has_is_kept_and_null():
    int_, text = {"type": "int"}, {"type": "varchar", "length": 4, "collation": LATIN, "nullable": False}
    loaded = KeptSchema.of(schema(int_, text, int_))
    first, _, third = schema(int_, text, int_).columns
    now = TableSchema((first, dataclasses.replace(third, ordinal=2)), ("c1",))
    found = goes_on_with(now, loaded, there={1, 3})
    assert [(c.ordinal, c.column_id, c.name, c.kept, c.absent) for c in found.columns] == [
        (1, 1, "c1", False, False),
        (2, 3, "c3", False, False),
        (3, 2, "c2", True, True),
    ]
    assert found.hash == loaded.hash
    # the source has it, or it is not known whether that is the same table
    assert goes_on_with(now, loaded, there={1, 2, 3}) is None
    assert goes_on_with(now, loaded) is None
    # what is planned is found again
    assert goes_on_with(now, KeptSchema.of(found), there={1, 3}) == found
