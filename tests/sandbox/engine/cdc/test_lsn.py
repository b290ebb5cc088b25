"""LSNs: layout, order and arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import (
    Log,
    decrement_lsn,
    encode,
    encode_all,
    increment_lsn,
    to_colon_form,
    to_hex,
)


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=50))
def test_log_positions_and_lsns_strictly_increase(transactions: list[int]) -> None:
    log, positions = Log(), []
    for records in transactions:
        first = log.reserve(records)
        positions += [first, first + records - 1, log.commit()]
    lsns = [encode(each) for each in positions]
    assert all(len(each) == 10 for each in lsns)
    assert all(a <= b for a, b in itertools.pairwise(lsns))
    assert len(set(lsns)) == len(set(positions))
    assert encode_all(np.array(positions, np.int64)).to_pylist() == lsns


def test_slots_count_from_one_within_a_block_and_commits_close_it() -> None:
    log = Log()
    log.reserve(1)
    commit = encode(log.commit())
    following = encode(log.reserve(1))
    assert commit[8:] == b"\x00\x02"
    assert following[8:] == b"\x00\x01"
    assert following[4:8] > commit[4:8]


def test_vlf_number_goes_up_when_one_is_full() -> None:
    assert encode(32 * 16_384)[:4] == b"\x00\x00\x00\x2e"
    assert encode(32 * 16_384 - 1)[:4] == b"\x00\x00\x00\x2d"


def test_text_forms() -> None:
    lsn = bytes.fromhex("0000002D00000580001D")
    assert to_hex(lsn) == "0x0000002D00000580001D"
    assert to_colon_form(lsn) == "0000002d:00000580:001d"


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("0000002D000005800005", "0000002D000005800006"),
        ("0000002D00000580FFFF", "0000002D000005810000"),
        ("0000002DFFFFFFFFFFFF", "0000002E000000000000"),
        ("00000000000000000000", "00000000000000000001"),
    ],
)
def test_increment_and_decrement_carry_across_all_fields(low: str, high: str) -> None:
    assert increment_lsn(bytes.fromhex(low)) == bytes.fromhex(high)
    assert decrement_lsn(bytes.fromhex(high)) == bytes.fromhex(low)


def test_null_arithmetic() -> None:
    assert increment_lsn(None) is None
    assert decrement_lsn(None) is None
