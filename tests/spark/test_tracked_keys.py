"""Keys that Change Tracking names once, however they are spelled: a mirror has each row once, as the source has it."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.sandbox.collations.comparing import WORD_SORTS, equality_key
from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS
from airflow_provider_mssql_cdc.sandbox.collations.weights import CHARACTERS
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.sources.ct.spellings import may_be_equal
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.support.spark.tracked_origin import TrackedOrigin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(900)]

TYPES = list(zip(("varchar", "nvarchar", "varchar", "nvarchar", "varchar"), COLLATIONS, strict=True))
BEFORE = ["plain", "case", "blank", "twice", "back", "gone", "straße", "co-op", "élan", "x", "y"]
# of texts that are equal under some of the collations
CHANGES = [
    ("case", "CASE"),
    ("blank", "blank  "),
    ("twice", "TWICE"),
    ("TWICE", "Twice "),
    ("back", "BACK"),
    ("BACK", "back"),
    ("straße", "strasse"),
    ("co-op", "Co-Op"),
    ("élan", "ELAN"),
]


def quoted(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"


def made(origin, name: str, type_: str) -> TrackedOrigin:
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("CREATE SCHEMA lab")
    found.sql(f"CREATE TABLE {name} (k {type_} NOT NULL, n int NOT NULL, v int, PRIMARY KEY (k, n))")
    return found


def same(found: TrackedOrigin, name: str) -> None:
    columns = ("k", "n", "v")
    assert found.mirror(name, columns) == found.source(name, columns)


@pytest.mark.parametrize(("type_", "collation"), TYPES)
def test_a_key_whose_spelling_changes_is_one_row(origin, type_, collation):
    name = "lab.keys"
    found = made(origin, name, f"{type_}(20) COLLATE {collation}")
    # the sandbox does not know in which order SQL collations have other letters
    before = [k for k in BEFORE if k.isascii() or not collation.startswith("SQL_")]
    found.sql(f"INSERT INTO {name} VALUES " + ", ".join(f"({quoted(k)}, 1, {n})" for n, k in enumerate(before)))
    # what differs in the other part is another key
    found.sql(f"INSERT INTO {name} VALUES (N'case', 2, 50), (N'CASE', 3, 51)")
    found.track(name)
    found.load(found.table(name))
    same(found, name)
    for old, new in CHANGES:
        also = ", v = v + 100" if len(old) % 2 else ""
        found.sql(f"UPDATE {name} SET k = {quoted(new)}{also} WHERE k = {quoted(old)} AND n = 1")
    found.load(found.table(name), connections=3, slice_rows=2)
    same(found, name)
    # a key that is spelled otherwise when it goes; and each by itself, one load after the other
    found.sql(f"UPDATE {name} SET k = N'GONE' WHERE k = N'gone'; DELETE FROM {name} WHERE k = N'GONE'")
    found.sql(f"DELETE FROM {name} WHERE k = N'x'; INSERT INTO {name} VALUES (N'X ', 1, 7)")
    found.load(found.table(name))
    same(found, name)
    for spelled in ("Y", "y", "Y  "):
        found.sql(f"UPDATE {name} SET k = {quoted(spelled)} WHERE k IN (N'y', N'Y')")
        found.load(found.table(name))
        same(found, name)
    found.sql(f"DELETE FROM {name} WHERE k IN (N'y', N'Y')")
    found.load(found.table(name))
    same(found, name)


def test_zeros_at_the_end_of_bytes_count_for_nothing(origin):
    name = "lab.keys"
    found = made(origin, name, "varbinary(8)")
    found.sql(f"INSERT INTO {name} VALUES (0x01, 1, 1), (0x0001, 1, 2), (0x02, 1, 3)")
    found.track(name)
    found.load(found.table(name))
    found.sql(f"UPDATE {name} SET k = 0x0100 WHERE k = 0x01; UPDATE {name} SET v = 9 WHERE k = 0x0001")
    found.load(found.table(name))
    same(found, name)


def test_a_key_whose_spelling_changes_while_it_is_copied_is_one_row(origin, monkeypatch):
    name = "lab.keys"
    found = made(origin, name, "varchar(20) COLLATE Latin1_General_CI_AS")
    found.sql(f"INSERT INTO {name} VALUES (N'one', 1, 1), (N'two', 1, 2)")
    found.track(name)
    read = Chunks.read

    def and_change(self, hole, folder):
        rows = read(self, hole, folder)
        found.sql(f"UPDATE {name} SET k = N'ONE' WHERE k = N'one'")
        return rows

    monkeypatch.setattr(Chunks, "read", and_change)
    found.load(found.table(name))
    same(found, name)


def test_a_key_that_is_spelled_otherwise_between_two_slices_is_one_row(origin, monkeypatch):
    """A slice has the one spelling, and the statement that closes all of them the other."""
    name = "lab.keys"
    found = made(origin, name, "varchar(20) COLLATE Latin1_General_CI_AS")
    found.sql(f"INSERT INTO {name} VALUES " + ", ".join(f"(N'k{n}', 1, {n})" for n in range(20)))
    found.track(name)
    found.load(found.table(name))
    found.sql(f"UPDATE {name} SET v = v + 100 WHERE v < 12; INSERT INTO {name} VALUES (N'new', 1, 1)")
    read, closed = TrackedRows._changes, []

    def and_change(self, before, after, folder, **given):
        if given.get("above") is not None:
            closed.append(folder)
            found.sql(
                f"UPDATE {name} SET k = UPPER(k) WHERE v BETWEEN 103 AND 108; DELETE FROM {name} WHERE v = 109;"
                f" INSERT INTO {name} VALUES (N'late', 1, 1); UPDATE {name} SET k = N'New' WHERE k = N'new'"
            )
        return read(self, before, after, folder, **given)

    with monkeypatch.context() as patch:
        patch.setattr(TrackedRows, "_changes", and_change)
        found.load(found.table(name), connections=3, slice_rows=4)
    assert len(closed) == 1
    same(found, name)
    # the position is that of the last statement: what it has read is not read again
    (table,) = found.load(found.table(name)).tables
    assert table.counts["events"] == 0


def test_what_any_collation_takes_for_equal_is_asked_for(spark):
    texts = ["", *CHARACTERS, *map("".join, itertools.product(CHARACTERS, repeat=2))]
    # where one stands for several, and several for one
    texts += map("".join, itertools.product("szyßueaäwüÿ", repeat=3))
    pairs = {
        ("a\uff21", "\uff41A"),
        ("カ", "か"),
        ("é", "e\u0301"),
        ("a\U0001f600", "a"),
        ("ﬁx", "fix"),
        ("œ", "OE"),
        ("Þ", "TH"),
        ("ø", "o"),
        ("Ärger", "aerger"),
        ("Århus", "aarhus"),
        ("kapı", "KAPI"),
        ("İz", "iz"),
        ("ccs", "CSCS"),
        ("Ware", "vare"),
        ("Fußsohle", "Fusssohle"),
        ("Maßzahl", "MASSZAHL"),
        ("\uff55\uff11", "u1"),
        ("\uff37", "w"),
        ("\uff39", "Y"),
        ("\u0175", "w"),
        ("\u1ef3", "y"),
        ("\u01d4", "u"),
        ("\u0175", "w\u0302"),
        ("\u0133s", "ijs"),
        ("ggy", "gygy"),
        ("\u00f6e", "o\u0308e"),
        ("й", "и\u0306"),
        ("が", "か\u3099"),
        ("\uff76\uff9e", "が"),
        ("ﬀ", "ff"),
        ("ⅱ", "II"),
        ("łąka", "laka"),
    }
    for name in ("iso_1", *WORD_SORTS):
        alike: dict[str, str] = {}
        for text in texts:
            first = alike.setdefault(equality_key(text, name), text)
            if first != text:
                pairs.add((first, text))
    assert len(pairs) > 20_000
    column = Column(1, 1, "k", "nvarchar", 40, collation="Latin1_General_CI_AI")
    rows = spark.createDataFrame(sorted(pairs), "one STRING, other STRING")
    missed = rows.where(~may_be_equal(column, F.col("one"), F.col("other"))).collect()
    assert [(repr(row["one"]), repr(row["other"])) for row in missed] == []
