"""Types that a target's column does not hold: the values go on in a column of their own, or as text."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.adding import widest
from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.columns import TargetColumn, check_columns, map_columns
from airflow_provider_mssql_cdc.core.entry_values import FAIL, NEW_COLUMN, STRING
from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.filling import lacking, own_columns, to_read_again
from airflow_provider_mssql_cdc.core.going_on import as_before, followed, follows, goes_on_with, held_as
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_change import check_followed, check_schema, told_of
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

NAME = TableName("dbo", "t")
LATIN = "Latin1_General_CI_AS"
INT, BIGINT, DATE = {"type": "int"}, {"type": "bigint"}, {"type": "date"}
TEXT, LONGER = ({"type": "varchar", "length": length, "collation": LATIN} for length in (9, 20))
WIDE = {"type": "nvarchar", "length": 40, "collation": LATIN}
CENTS, MORE, FINER = (
    {"type": "decimal", "precision": precision, "scale": scale} for precision, scale in ((9, 2), (11, 2), (11, 4))
)
TIME, EXACT = {"type": "datetime2", "scale": 3}, {"type": "datetime2", "scale": 7}
LARGE = {"type": "varchar", "length": -1, "collation": LATIN}
TYPES = [INT, BIGINT, DATE, TEXT, LONGER, WIDE, CENTS, MORE, FINER, TIME, EXACT, {"type": "uniqueidentifier"}]
HELD = ["INT", "BIGINT", "DATE", "STRING", "STRING", "STRING"]
HELD += ["DECIMAL(9,2)", "DECIMAL(11,2)", "DECIMAL(11,4)", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ", "STRING"]


def schema(facts: dict, *more: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    columns = (Column(1, 1, "id", "int", nullable=False), Column(2, 2, "c", **facts), *more)
    return TableSchema(columns, key)


def targets(of: TableSchema, selection: Selection = EVERYTHING) -> dict[str, TargetColumn]:
    """The columns of a target, but for the key's."""
    return {target.name: target for m in map_columns(NAME, of, selection)[1:] for target in m.targets}


def held(facts: dict) -> str:
    return HELD[TYPES.index(facts)]


def in_place(then: dict, now: dict) -> bool:
    """Whether a column that holds one type holds another one, as the table in the documentation says."""
    widens = [(INT, BIGINT), (CENTS, MORE)]
    if then == EXACT and now == TIME:
        # the text of all digits would have no values any more
        return False
    return held(then) == held(now) or (then, now) in widens


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6), st.sampled_from([NEW_COLUMN, STRING]), st.data())
def test_a_column_that_readers_use_stays_as_it_is_and_the_values_go_on_beside_it(types, how, data):
    has = schema(types[0])
    live, as_text = "c", False
    for then, now in itertools.pairwise(types):
        before, feed = targets(has), schema(now)
        found = goes_on_with(feed, KeptSchema.of(has), widens=how)
        after = targets(found)
        # none goes, and none is renamed; one that is left is NULL from now on, and stays so
        assert before.keys() <= after.keys()
        stays = as_text or in_place(then, now) or (how == STRING and held(then) == "STRING")
        new = [name for name in after if name not in before and not name.endswith("__text")]
        suffix = found.columns[1].suffix
        assert new == ([] if stays else [f"c{suffix}"])
        if not stays:
            live = f"c{suffix}"
            as_text = how == STRING
        elif how == STRING and then != now and not in_place(then, now):
            as_text = True
        kind = "STRING" if as_text else held(now)
        assert (after[live].type, after[live].former) == (kind, False)
        for name, column in before.items():
            if after[name].former:
                assert (after[name].type, after[name].expression) == (column.type, f"CAST(NULL AS {column.type})")
        assert {name for name, each in after.items() if not each.former} - {live} <= {f"{live}__text"}
        # the target's marker alone tells it, and whoever loads on comes to the same, whatever is said of types by then
        kept = KeptSchema(KeptSchema.of(found).canonical)
        assert kept.hash == found.hash
        other = data.draw(st.sampled_from(["", FAIL, NEW_COLUMN, STRING]))
        assert goes_on_with(feed, kept, widens=other) == found
        # and it is what was followed
        loaded = KeptSchema.of(has)
        assert as_before(found, loaded).hash == has.hash
        assert follows(found, has.hash, loaded, widens=how)
        assert goes_on_with(feed, loaded, widens=how) == found
        changed = followed(loaded, found)
        assert [*changed] == (["c"] if then != now else [])
        if not stays:
            assert (changed["c"].anew, changed["c"].apart) == (True, True)
        again = to_read_again(changed, Chosen(found, EVERYTHING))
        assert set(again) <= {live}
        whole = Chosen(found, EVERYTHING)
        assert lacking(whole, whole, again) == (("c",) if again else ())
        has = found
    check_columns(NAME, has)


@given(st.lists(st.sampled_from(TYPES), min_size=2, max_size=6))
def test_columns_of_their_own_have_names_of_their_own(types):
    has = schema(types[0])
    for now in types[1:]:
        has = goes_on_with(schema(now), KeptSchema.of(has), widens=NEW_COLUMN)
    suffixes = [each.suffix for each in has.columns[1].former] + [has.columns[1].suffix]
    assert len({*suffixes}) == len(suffixes)
    assert suffixes[0] == ""


def test_what_they_are_called():
    has, names = schema(INT), []
    for now in (TEXT, WIDE, DATE, CENTS, MORE, FINER, INT, TEXT, EXACT, TIME):
        has = goes_on_with(schema(now), KeptSchema.of(has), widens=NEW_COLUMN)
        names.append(f"c{has.columns[1].suffix}")
    assert names == [
        "c__varchar",
        "c__varchar",
        "c__date",
        "c__decimal_9_2",
        "c__decimal_9_2",
        "c__decimal_11_4",
        "c__int",
        "c__varchar_2",
        "c__datetime2",
        "c__datetime2_2",
    ]
    found = targets(has, Selection(renames={"c": "amount"}))
    assert [*found] == [
        "amount__datetime2_2",
        "amount",
        "amount__varchar",
        "amount__date",
        "amount__decimal_9_2",
        "amount__decimal_11_4",
        "amount__int",
        "amount__varchar_2",
        "amount__datetime2",
        "amount__datetime2__text",
    ]
    assert [found[name].type for name in ("amount", "amount__decimal_9_2")] == ["INT", "DECIMAL(11,2)"]


def test_sinks_that_followed_different_changes_come_to_the_same_columns():
    """One was killed before it followed a change that another one has followed; then there was a second one."""
    first, feed = schema(INT), schema(FINER)
    second = goes_on_with(schema(TEXT), KeptSchema.of(first), widens=NEW_COLUMN)
    kept = {each.hash: KeptSchema.of(each) for each in (first, second)}.get
    # what the checkpoint knows, and what a marker says
    planned = goes_on_with(feed, KeptSchema.of(first), widens=NEW_COLUMN)
    ahead = goes_on_with(feed, KeptSchema.of(second), widens=NEW_COLUMN)
    assert ([*targets(planned)], [*targets(ahead)]) == (
        ["c__decimal_11_4", "c"],
        ["c__decimal_11_4", "c", "c__varchar"],
    )
    assert held_as(planned, [planned, ahead]) == ahead
    assert held_as(ahead, [planned]) == ahead
    for has in (first, second):
        own = own_columns(Chosen(ahead, EVERYTHING), feed, has.hash, kept, (), widens=NEW_COLUMN)
        assert own.schema == ahead
        assert follows(own.schema, has.hash, kept(has.hash), widens=NEW_COLUMN)
        assert as_before(own.schema, kept(has.hash)) == has
    # it is no way back
    assert own_columns(Chosen(planned, EVERYTHING), feed, second.hash, kept, (), widens=NEW_COLUMN).schema == ahead
    # the longest of them is what a plan begins with
    position = Lsn(bytes(10))
    states = [SinkState(position, position, schema_hash=each.hash) for each in (first, second)]
    assert widest(states, kept) == states[::-1]


def test_text_is_what_the_server_makes_of_the_values():
    has = goes_on_with(schema(DATE), KeptSchema.of(schema(INT)), widens=STRING)
    (mapping,) = map_columns(NAME, has)[1:]
    assert (mapping.select, mapping.read_type, mapping.name) == ("CONVERT(varchar(10), [c], 23)", "STRING", "c__string")
    # a column that is text already goes on, and what it holds is read again
    has = goes_on_with(schema(FINER), KeptSchema.of(schema(TEXT)), widens=STRING)
    (mapping,) = map_columns(NAME, has)[1:]
    assert (mapping.select, [*targets(has)]) == ("CONVERT(varchar(41), [c])", ["c"])
    assert followed(KeptSchema.of(schema(TEXT)), has)["c"].anew
    # float(24) has other digits than float(53)
    text = goes_on_with(schema({"type": "real"}), KeptSchema.of(schema(TEXT)), widens=STRING)
    now = goes_on_with(schema({"type": "float"}), KeptSchema.of(text), widens=STRING)
    assert followed(KeptSchema.of(text), now)["c"].anew


def test_names_of_the_source_are_left_to_it():
    other = Column(3, 3, "C__VARCHAR", "int"), Column(4, 4, "c__varchar_2__text", "int")
    has = goes_on_with(schema(TEXT, *other), KeptSchema.of(schema(INT, *other)), widens=NEW_COLUMN)
    assert has.columns[1].suffix == "__varchar_3"
    # one that an author gives to another column is refused, before anything is altered
    has = goes_on_with(
        schema(TEXT, Column(3, 3, "d", "int")), KeptSchema.of(schema(INT, Column(3, 3, "d", "int"))), widens=NEW_COLUMN
    )
    with pytest.raises(UnsupportedColumnError, match="'c__varchar', the name of the column 'c'") as refused:
        check_columns(NAME, has, Selection(renames={"d": "c__varchar"}))
    assert "name" in refused.value.advice


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (schema(INT), schema(LARGE)),
        (schema(LARGE), schema(INT)),
        (schema({**INT, "computed": True}), schema(TEXT)),
        (schema(INT, key=("id", "c")), schema(TEXT, key=("id", "c"))),
        (schema(INT), schema({"type": "sql_variant"})),
    ],
    ids=["to a large one", "from a large one", "computed", "key", "one that is not loaded"],
)
def test_keys_large_values_and_what_cannot_be_loaded_fail_with_what_to_do(then, now):
    for how in (FAIL, NEW_COLUMN, STRING):
        assert goes_on_with(now, KeptSchema.of(then), widens=how) is None
    assert goes_on_with(schema(TEXT), KeptSchema.of(schema(INT)), widens=FAIL) is None
    assert goes_on_with(schema(TEXT), KeptSchema.of(schema(INT))) is None


def test_a_table_that_fails_is_told_of_the_two_other_ways():
    loaded, position = schema(INT), Lsn(bytes(10))
    sink = SinkState(position, position, schema_hash=loaded.hash)
    with pytest.raises(SchemaChangedError) as failed:
        check_schema(NAME, schema(TEXT), [sink], lambda _: KeptSchema.of(loaded), widens=FAIL)
    assert 'incompatible_types="new_column"' in failed.value.advice
    assert 'incompatible_types="string"' in failed.value.advice


def test_a_column_of_partitions_is_not_left():
    loaded = KeptSchema.of(schema(INT))
    now = goes_on_with(schema(TEXT), loaded, widens=NEW_COLUMN)
    types, selection = followed(loaded, now), Selection(renames={"c": "amount"})
    for partitions in (("amount",), ("bucket(4, AMOUNT)",)):
        with pytest.raises(SchemaChangedError, match="the type of c has changed to one that amount does not hold"):
            check_followed(NAME, types, selection, partition_by=partitions)
    check_followed(NAME, types, selection, partition_by=("c", "bucket(4, id)"))
    assert told_of({"mirror": types}, now, selection) == [
        f"column c was int(0,0,0), and is varchar(9,0,0) COLLATE {LATIN}: mirror follow, in the column "
        "amount__varchar; this may have rounded, cut or padded values without an event: they are read again"
    ]


def test_what_may_be_seen_of_values_holds_for_all_of_their_columns():
    now = goes_on_with(schema(EXACT), KeptSchema.of(schema(INT)), widens=NEW_COLUMN)
    later = goes_on_with(schema(TEXT), KeptSchema.of(now), widens=NEW_COLUMN)
    hashed = targets(later, Selection(masks={"c": "hash"}))
    assert {name: (each.type, each.former) for name, each in hashed.items()} == {
        "c__varchar": ("STRING", False),
        "c": ("STRING", True),
        "c__datetime2": ("STRING", True),
    }
    redacted = targets(later, Selection(masks={"c": "redact"}))
    assert {name: (each.type, each.expression) for name, each in redacted.items()} == {
        "c__varchar": ("STRING", "'redacted'"),
        "c": ("INT", "CAST(NULL AS INT)"),
        "c__datetime2": ("TIMESTAMP_NTZ", "CAST(NULL AS TIMESTAMP_NTZ)"),
    }


def test_a_column_that_the_source_drops_keeps_all_of_its_columns():
    now = goes_on_with(schema(TEXT), KeptSchema.of(schema(INT)), widens=NEW_COLUMN)
    dropped = schema({**TEXT, "dropped": True})
    found = goes_on_with(dropped, KeptSchema.of(now), widens=NEW_COLUMN)
    assert ([*targets(found)], found.hash, found.kept) == (["c__varchar", "c"], now.hash, ("c",))
    without = TableSchema(dropped.columns[:1], ("id",))
    absent = goes_on_with(without, KeptSchema.of(now), widens=NEW_COLUMN, there={1})
    assert (targets(absent), absent.hash) == (targets(dataclasses.replace(found)), now.hash)
