"""Specs, receipts and markers as JSON, and what an earlier version wrote."""

import datetime
import json

import pytest

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.exceptions import FormatError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

CREATED = datetime.datetime(2026, 3, 1, 12, 0, 0, 3000)
ORDERS = TableName("sales", "orders")
COLUMNS = (Column(1, 1, "id", "int", 4, 10, nullable=False),)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


MARKER = Marker(
    position=lsn(9),
    witness=Witness(lsn(8), CREATED, "5D3F"),
    server="db:1433",
    database="shop",
    table=ORDERS,
    feeds=(FeedSpan(FeedRef("sales_orders", 11, CREATED), lsn(1)),),
    schema_hash="1:abc",
    window_after=lsn(3),
    events={"inserted": 2},
    spec_id="a1",
)
SPEC = JobSpec(
    id="a1",
    source=SourceSpec("db:1433", "shop", "jdbc:sqlserver://;", {"encrypt": "true"}, "UTC"),
    tables=(
        TableSpec(
            ORDERS,
            CaptureInstance("sales_orders", 11, ORDERS, 1, CREATED, COLUMNS, start_lsn=lsn(1)),
            TableSchema(COLUMNS, ("id",)),
            (SinkSpec("mirror", ("lake", "shop", "orders"), lsn(3), lsn(2)),),
        ),
    ),
    upto=Cut.at(lsn(9)),
    work_dir="/work",
)


@pytest.mark.parametrize("value", [MARKER, SPEC], ids=["marker", "spec"])
def test_what_was_written_reads_back(value):
    assert from_json(type(value), to_json(value)) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (MARKER, ["witness", "recovery_fork"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else type(value).__name__,
)
def test_what_an_earlier_version_did_not_write_is_unknown(value, path):
    data = json.loads(to_json(value))
    *outer, last = path
    holder, read = data, from_json(type(value), to_json(value))
    for name in outer:
        holder, read = holder[name], getattr(read, name)
    assert getattr(read, last) is not None
    del holder[last]
    read = from_json(type(value), json.dumps(data))
    for name in path:
        read = getattr(read, name)
    assert read is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2}', '{"version": "x"}'])
def test_anything_else_is_refused(text):
    with pytest.raises(FormatError, match="marker"):
        from_json(Marker, text)
