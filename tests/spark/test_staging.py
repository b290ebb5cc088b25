"""Masks of any width, row numbers, and the server's local times."""

import dataclasses
import datetime
import shutil
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.spark.server_time import to_utc
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.sources.cdc.query import raw_schema, slice_sql
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import Slice
from tests.support.spark import model
from tests.support.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.mark.parametrize("count", [9, 17, 300])
def test_the_mask_of_a_wide_table_names_its_columns(spark, tmp_path, count):
    columns = tuple(Column(n, n, f"it's {n}", "nvarchar", length=-1 if n % 2 else 20) for n in range(1, count + 1))
    spec = model.table_spec(columns=columns, key=(columns[8].name,))
    mappings = map_columns(spec.name, spec.schema)
    masks = [{n} for n in range(1, count + 1)] + [{1, count}, set(range(1, count + 1))]
    rows = [
        (model.lsn(10).value, n, model.lsn(5).value, 4, model.mask(bits, count), n, None, None, *[None] * count)
        for n, bits in enumerate(masks, start=1)
    ]
    window = Window(model.lsn(1), model.lsn(20))

    raw = local(table_session(spark), rows, raw_schema(mappings)).coalesce(1)
    staged = stage(raw, spec.schema, mappings, [window], str(tmp_path / "events"), history=True)

    found = {row["_command_id"]: row for row in staged.rows(window).collect()}
    for n, bits in enumerate(masks, start=1):
        assert found[n]["_changed"] == [f"it's {bit}" for bit in sorted(bits)]
        assert found[n]["_unknown"] == [f"it's {bit}" for bit in range(1, count + 1, 2) if bit not in bits]
        assert found[n]["_key_changed"] == (9 in bits)
    assert staged.count(window).unknown == len(masks) - 1


def test_the_server_is_asked_for_the_key_bits_of_the_right_bytes():
    columns = tuple(Column(n, n, f"c{n}", "int") for n in range(1, 18))
    spec = model.table_spec(columns=columns, key=("c1", "c3", "c9", "c17"))
    part = Slice(Window(model.lsn(1), model.lsn(2)), 0)

    query = slice_sql(spec.feed, spec.schema, map_columns(spec.name, spec.schema), part, history=False)

    mask = "[__$update_mask]"
    byte = f"CONVERT(int, SUBSTRING({mask}, DATALENGTH({mask})"
    assert query.endswith(
        f"WHERE ([__$operation] <> 3 OR {mask} IS NULL OR {byte} - 0, 1)) & 5 <> 0"
        f" OR {byte} - 1, 1)) & 1 <> 0 OR {byte} - 2, 1)) & 1 <> 0)"
    )


def test_rows_of_a_change_table_without_command_ids_are_ordered_by_what_there_is():
    spec = model.table_spec()
    instance = dataclasses.replace(spec.feed, has_command_id=False)
    part = Slice(Window(model.lsn(1), model.lsn(2)), 0)

    query = slice_sql(instance, spec.schema, map_columns(spec.name, spec.schema), part, history=True)

    assert "[__$command_id]" not in query
    assert "CAST(NULL AS int) AS command_id" in query
    assert "ROW_NUMBER() OVER (PARTITION BY [__$start_lsn] ORDER BY [__$seqval], [__$operation])" in query


def test_what_comes_to_lie_beside_the_staged_files_is_not_read(spark, tmp_path):
    spec = model.table_spec()
    mappings = map_columns(spec.name, spec.schema)
    row = (model.lsn(10).value, 1, model.lsn(5).value, 2, b"\x1f", 1, None, None, 1, 1, None, None, None)
    raw = local(table_session(spark), [row], raw_schema(mappings)).coalesce(1)
    window, folder = Window(model.lsn(1), model.lsn(20)), tmp_path / "a b%20c+d#é" / "events"

    staged = stage(raw, spec.schema, mappings, [window], str(folder), history=True)
    for file in folder.glob("part-*.parquet"):
        shutil.copy(file, folder / f"part-of-an-attempt-that-was-killed-{file.name}")

    assert staged.rows(window).count() == 1
    assert staged.count(Window(model.lsn(2), model.lsn(20))).events == 1


@pytest.mark.usefixtures("careless_cluster")
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_staged_rows_that_cannot_be_read_are_an_error_whatever_a_cluster_ignores(spark, tmp_path, how):
    spec = model.table_spec()
    mappings = map_columns(spec.name, spec.schema)
    row = (model.lsn(10).value, 1, model.lsn(5).value, 2, b"\x1f", 1, None, None, 1, 1, None, None, None)
    raw = local(table_session(spark), [row], raw_schema(mappings)).coalesce(1)
    window, folder = Window(model.lsn(1), model.lsn(20)), tmp_path / "events"
    rows = stage(raw, spec.schema, mappings, [window], str(folder), history=True).rows(window)

    for file in folder.glob("part-*.parquet"):
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(b"PAR1")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        rows.collect()


@pytest.mark.parametrize(
    ("after", "upto", "condition"),
    [
        (None, None, ""),
        (None, 7, " AND [__$command_id] <= 7"),
        (7, 9, " AND [__$command_id] <= 9 AND [__$command_id] > 7"),
    ],
)
def test_the_first_part_of_a_transaction_has_no_lower_bound(after, upto, condition):
    spec = model.table_spec()
    part = Slice(Window(model.lsn(1), model.lsn(2)), 0, after, upto)

    query = slice_sql(spec.feed, spec.schema, map_columns(spec.name, spec.schema), part, history=True)

    bounds = f"WHERE [__$start_lsn] > {model.lsn(1)} AND [__$start_lsn] <= {model.lsn(2)}{condition}) w"
    assert bounds in query


def test_operations_that_no_change_table_has_are_an_error(spark, tmp_path):
    spec = model.table_spec()
    mappings = map_columns(spec.name, spec.schema)
    row = (model.lsn(10).value, 1, model.lsn(5).value, 5, b"\x1f", 1, None, None, 1, 1, None, None, None)
    raw = local(table_session(spark), [row], raw_schema(mappings))

    with pytest.raises(Exception, match=r"__\$operation 5"):
        stage(raw, spec.schema, mappings, [Window(model.lsn(1), model.lsn(20))], str(tmp_path / "events"), history=True)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_local_times_become_instants_but_for_repeated_and_missing_ones(spark, zone):
    session = table_session(spark)
    start = datetime.datetime(2025, 1, 1)
    times = [start + datetime.timedelta(minutes=15 * n) for n in range(4 * 24 * 400)]

    frame = local(session, [(time,) for time in times], "t TIMESTAMP_NTZ")
    rows = frame.select("t", F.unix_micros(to_utc(F.col("t"), zone)).alias("u")).collect()

    def instant(time):
        early, late = (time.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
        back = early.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        return None if early != late or back != time else int(early.timestamp()) * 1_000_000

    assert {row["t"]: row["u"] for row in rows} == {time: instant(time) for time in times}
