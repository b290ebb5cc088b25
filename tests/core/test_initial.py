"""With what tables of changes begin: what authors write, and the position that it is."""

from __future__ import annotations

import datetime

import pytest

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.initial import WITH_COPY, Initial
from airflow_provider_mssql_cdc.core.position import Lsn

LSN = Lsn((50).to_bytes(10))
CUT, LOW = Lsn((90).to_bytes(10)), Lsn((10).to_bytes(10))
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("given", "begin", "text"),
    [
        ("earliest", LOW, "earliest"),
        ("latest", CUT, "latest"),
        (LSN.text, LSN, LSN.text),
        (LSN.text.lower(), LSN, LSN.text),
        ("00000000:00000000:0032", LSN, LSN.text),
        ("2026-01-31T12:00:00+00:00", LSN, str(NOON)),
        ("2026-01-31T13:00:00+01:00", LSN, "2026-01-31 13:00:00+01:00"),
        (NOON, LSN, str(NOON)),
    ],
)
def test_what_authors_write_is_a_position(given: object, begin: Lsn, text: str) -> None:
    initial = Initial.parse(given)
    assert (initial.copies, str(initial)) == (False, text)
    assert initial.moment in (None, NOON)
    assert initial.placed(lambda moment: LSN).begin(cut=CUT, readable_from=LOW) == begin
    assert Initial.parse(initial) == initial


def test_a_copy_begins_at_no_position_of_before() -> None:
    assert Initial.parse("copy") == WITH_COPY
    assert WITH_COPY.copies
    assert WITH_COPY.begin(cut=CUT, readable_from=LOW) is None


@pytest.mark.parametrize("given", ["newest", "", "0x00000000000000000000", "0x12", "2026-01-31T12:00:00", 5, None])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(ParameterError, match='expected "copy", "earliest", "latest", a commit LSN'):
        Initial.parse(given)
    for without in (NOON.replace(tzinfo=None), "2026-01-31T12:00:00"):
        with pytest.raises(ParameterError, match="has no time zone"):
            Initial.parse(without)
