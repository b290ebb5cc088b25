"""What transactions did in several tables, against the change tables."""

import random
import re
from unittest import mock

import pytest
from pyspark.errors import PySparkException

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.spark.by_transaction import by_transaction
from tests.support import histories
from tests.support.spark.loads import Loads, check, prepare, write

pytestmark = pytest.mark.xdist_group(__name__)

TABLES = ("items", "flags")
COLUMNS = (
    "_lsn STRING, _commit_ts TIMESTAMP_NTZ, _commit_ts_utc TIMESTAMP, schema STRING, table STRING,"
    " events BIGINT, inserted BIGINT, updated BIGINT, deleted BIGINT"
)
KINDS = {2: "inserted", 4: "updated", 1: "deleted"}


def expected_of(live, loads):
    """Each transaction's commit time and the events in each table, as the change tables have them."""
    expected = {}
    for table in TABLES:
        (low,) = {lsn for op, lsn, _, _ in loads.history(table) if op == "R"}
        for row in live.sql(
            "SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, [__$operation] AS operation, tran_end_time AS ended"
            f" FROM cdc.lab_{table}_CT JOIN cdc.lsn_time_mapping ON start_lsn = [__$start_lsn]"
            f" WHERE [__$operation] <> 3 AND [__$start_lsn] > {low}"
        ):
            _, of_tables = expected.setdefault(row["lsn"], (row["ended"], {}))
            counts = of_tables.setdefault(f"lab.{table}", dict.fromkeys(KINDS.values(), 0))
            counts[KINDS[row["operation"]]] += 1
    return expected


def found_in(rows):
    """The same of the rows."""
    found = {}
    for row in rows.collect():
        of_tables = {table: counts.asDict() for table, counts in row["tables"].items()}
        for counts in of_tables.values():
            assert counts.pop("events") == sum(counts.values())
        assert row["events"] == sum(sum(counts.values()) for counts in of_tables.values())
        assert row["_lsn"] not in found
        found[row["_lsn"]] = (row["_commit_ts"], of_tables)
    return found


def test_each_transaction_is_told_once_with_what_it_did_in_each_table(live):
    rng = random.Random(4)
    models = [histories.Model(h) for h in range(5)]
    prepare(live)
    loads = Loads(live, ("history", "transactions"), tables=TABLES)
    for _ in range(2):
        write(live, models, rng, 40)
        live.wait_captured()
        loads.load()
    check(loads, models)

    spark = live.spark.newSession()
    tables = [spark.table(live.sql_name(f"lab.{table}", "transactions")) for table in TABLES]
    expected = expected_of(live, loads)
    assert any(len(of_tables) == len(TABLES) for _, of_tables in expected.values())
    assert found_in(by_transaction(*tables)) == expected
    assert found_in(by_transaction(tables[0])) == {
        lsn: (ended, {"lab.items": of_tables["lab.items"]})
        for lsn, (ended, of_tables) in expected.items()
        if "lab.items" in of_tables
    }

    # of a part of them, named in either form
    first, *_, last = sorted(expected)
    _, after, *_, upto, _ = sorted(expected)
    colons = re.sub("0x(.{8})(.{8})(.{4})", r"\1:\2:\3", upto).lower()
    part = {lsn: transaction for lsn, transaction in expected.items() if after < lsn <= upto}
    assert found_in(by_transaction(*tables, after=after, upto=colons)) == part
    assert found_in(by_transaction(*tables, after=last)) == {}
    assert found_in(by_transaction(*tables, upto=first)).keys() == {first}

    # a table that it did not change is NULL
    deleted = by_transaction(*tables).selectExpr("_lsn", "tables['lab.flags'].deleted")
    assert dict(map(tuple, deleted.collect())) == {
        lsn: of_tables.get("lab.flags", {}).get("deleted") for lsn, (_, of_tables) in expected.items()
    }

    with pytest.raises(PySparkException, match=r"DUPLICATED_MAP_KEY.*lab\.items"):
        by_transaction(tables[0], tables[0]).collect()
    history = spark.table(live.sql_name("lab.flags", "history"))
    with pytest.raises(ParameterError, match=r"number 2 are not those .*: schema, table, events, inserted, updated"):
        by_transaction(tables[0], history)


def test_positions_are_compared_as_rows_have_them_whatever_people_read(spark):
    lsns = [str(Lsn(number.to_bytes(10))) for number in (1, 2, 3)]
    rows = spark.createDataFrame([(lsn, None, None, "s", "t", 1, 1, 0, 0) for lsn in lsns], COLUMNS)
    with mock.patch.object(Lsn, "__str__", return_value="an LSN"):
        part = by_transaction(rows, after=lsns[0], upto=lsns[1])
    assert [row["_lsn"] for row in part.collect()] == [lsns[1]]


def test_what_is_no_table_and_no_lsn_is_refused(spark):
    with pytest.raises(ParameterError, match="needs the rows of one transactions table"):
        by_transaction()
    rows = spark.createDataFrame([], COLUMNS)
    for name in ("after", "upto"):
        with pytest.raises(ParameterError, match=f"{name}='0x1': not an LSN"):
            by_transaction(rows, **{name: "0x1"})
