import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.lsn import Lsn

lsns = st.binary(min_size=10, max_size=10).map(Lsn)


@given(lsns)
def test_text_is_0x_and_twenty_upper_case_digits_and_reads_back(lsn):
    text = str(lsn)
    assert text == "0x" + "".join(f"{byte:02X}" for byte in lsn.value)
    assert Lsn.parse(text) == lsn
    assert Lsn.parse(text.lower()) == lsn


@given(lsns)
def test_the_colon_form_reads_as_the_same_position(lsn):
    digits = lsn.value.hex()
    assert Lsn.parse(f"{digits[:8]}:{digits[8:16]}:{digits[16:]}") == lsn


@given(lsns, lsns)
def test_order_is_that_of_the_unsigned_number_and_of_the_text(left, right):
    as_number = int.from_bytes(left.value, "big") < int.from_bytes(right.value, "big")
    assert (left < right) == as_number == (str(left) < str(right))


@given(lsns)
def test_next_and_previous_are_one_apart_across_all_ten_bytes(lsn):
    number = int.from_bytes(lsn.value, "big")
    if number < 2**80 - 1:
        assert int.from_bytes(lsn.next().value, "big") == number + 1
        assert lsn.next().previous() == lsn
    if number > 0:
        assert int.from_bytes(lsn.previous().value, "big") == number - 1


def test_next_carries_across_the_three_fields():
    assert str(Lsn.parse("0x0000002DFFFFFFFFFFFF").next()) == "0x0000002E000000000000"


def test_there_is_nothing_beyond_the_ends():
    with pytest.raises(OverflowError, match="0xFFFFFFFFFFFFFFFFFFFF"):
        Lsn(b"\xff" * 10).next()
    with pytest.raises(OverflowError, match="0x00000000000000000000"):
        Lsn(bytes(10)).previous()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "0x2D",
        "0x0000002D00000580001",
        "0000002D00000580001D",
        "0x0000002D00000580001G",
        "2d:580:1d",
        " 0x" + "0" * 20,
    ],
)
def test_anything_else_is_refused_rather_than_padded(text):
    with pytest.raises(ValueError, match="not an LSN"):
        Lsn.parse(text)


@pytest.mark.parametrize("value", [b"", bytes(9), bytes(11), "0123456789", bytearray(10)])
def test_only_ten_bytes_are_an_lsn(value):
    with pytest.raises(ValueError, match="an LSN has 10 bytes"):
        Lsn(value)


def test_zero_is_recognised():
    assert Lsn(bytes(10)).is_zero
    assert not Lsn(bytes(9) + b"\x01").is_zero
