"""Word sort: what is published of it, and that its keys are an order at all."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.collations.comparing import WORD_SORTS
from airflow_provider_mssql_cdc.sandbox.collations.weights import ACCENTS, CHARACTERS

TABLES = sorted(WORD_SORTS)
FULL_WIDTH = "".join(map(chr, range(0xFF01, 0xFF5F)))
texts = st.text(st.sampled_from(CHARACTERS + FULL_WIDTH + "".join(ACCENTS) + "aAeE' -"), max_size=6)


def key(text: str, table: str = "word") -> str:
    found = WORD_SORTS[table].key(text)
    assert found is not None
    return found


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(["carps", "cars", "car's", "car-s"], id="Microsoft KB 305704"),
        pytest.param(
            ["co_op", "coat", "comb", "coop", "co-op", "cork", "went", "were", "we're"],
            id="Windows SDK, word sort",
        ),
        pytest.param(["_'_", "_-_", "_+_", "_0_", "A+A", "A0A", "A'A", "A-A"], id="measured on 2008 R2, published"),
        pytest.param(["cote", "coté", "côte", "côté"], id="accents from the left"),
        pytest.param(["a", "á", "à", "â", "ä", "ã", "å", "b"], id="accents"),
    ],
)
def test_published_orders(table: str, listed: list[str]) -> None:
    for shuffled in itertools.islice(itertools.permutations(listed), 0, 5000, 17):
        assert sorted(shuffled, key=lambda text: key(text, table)) == listed


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "Strasse"),
        ("Æsop", "AEsop"),
        ("œuvre", "oeuvre"),
        ("þing", "thing"),
        ("é", "e\u0301"),
        ("ç", "c\u0327"),
        ("Å", "A\u030a"),
        ("Ａｂ１", "Ab1"),
        ("a", "a   "),
    ],
)
def test_equal_texts(table: str, one: str, other: str) -> None:
    assert key(one, table) == key(other, table)


@pytest.mark.parametrize(
    ("one", "other"), [("coop", "co-op"), ("a", "á"), ("-", ""), ("a", " a"), ("we're", "were"), ("o", "ø"), ("d", "ð")]
)
def test_unequal_texts(one: str, other: str) -> None:
    assert all(key(one, table) != key(other, table) for table in TABLES)


def test_case_counts_where_the_collation_says_so_and_the_lower_comes_first() -> None:
    assert key("Abc") == key("aBC")
    listed = ["abc", "abC", "aBc", "Abc", "abd"]
    for shuffled in itertools.permutations(listed):
        assert sorted(shuffled, key=lambda text: key(text, "word_cs")) == listed


@pytest.mark.parametrize("text", ["Ω", "日本", "ě", "\x00", "\x07", "\u0301", "-\u0301", "🙂", "a -", "a  '-"])
def test_what_is_not_known_has_no_key(text: str) -> None:
    assert {WORD_SORTS[table].key(text) for table in TABLES} == {None}


@given(table=st.sampled_from(TABLES), one=texts, other=texts)
def test_a_text_and_its_forms_are_equal_and_no_form_is_equal_to_two(table: str, one: str, other: str) -> None:
    first, second = (WORD_SORTS[table].key(text) for text in (one, other))
    if first is None or second is None:
        return
    assert WORD_SORTS[table].key(one + "  ") == first
    if table != "word_cs":
        assert WORD_SORTS[table].key(one.swapcase() if "ß" not in one and "ŸƒŒ" not in one else one) in (first, None)
    if first == second:
        # what goes on in the same way stays equal
        assert WORD_SORTS[table].key(one.rstrip(" ") + "x") == WORD_SORTS[table].key(other.rstrip(" ") + "x")


@given(table=st.sampled_from(TABLES), start=st.text(st.sampled_from("abcdé"), max_size=3), one=texts, other=texts)
def test_texts_with_the_same_beginning_compare_as_their_ends(table: str, start: str, one: str, other: str) -> None:
    """Where case and accents are out of play: the first level is that of characters, one by one."""
    plain = WORD_SORTS["word"]
    ends = [plain.key(text) for text in (one, other)]
    joined = [plain.key(start + text) for text in (one, other)]
    if None in ends or None in joined or "\x01" in f"{ends[0]}{ends[1]}":
        return
    assert (ends[0] < ends[1]) == (joined[0] < joined[1])  # type: ignore[operator]
