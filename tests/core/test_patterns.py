"""Table patterns: what they mean, against a matcher that shares nothing with LIKE."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.patterns import PatternError, TablePattern, literal, parse_name, parse_pattern


def like(pattern: str, text: str) -> bool:
    r"""LIKE .. ESCAPE '\' for patterns without character sets."""
    out, escaped = "", False
    for character in pattern:
        if escaped:
            out, escaped = out + re.escape(character), False
        elif character == "\\":
            escaped = True
        else:
            assert character != "["
            out += {"%": ".*", "_": "."}.get(character, re.escape(character))
    return re.fullmatch(out, text, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("orders", None, "orders"),
        ("sales.orders", "sales", "orders"),
        ("sales.*", "sales", "%"),
        ("*.order*s", "%", "order%s"),
        (" sales.orders ", "sales", "orders"),
        ("order_items", None, r"order\_items"),
        ("[a.b].[c]", "a.b", "c"),
        ("[a]]b].c", "a]b", "c"),
        ('"say ""x""".[two words]', 'say "x"', "two words"),
        ("dbo.[50%*]", "dbo", r"50\%*"),
        ("dbo.[a[1]]]", "dbo", r"a\[1]"),
        (r"dbo.a\b", "dbo", r"a\\b"),
    ],
)
def test_parse(text: str, schema: str | None, table: str) -> None:
    assert parse_pattern(text) == TablePattern(text, schema, table)


@pytest.mark.parametrize("text", ["", " ", ".", "a.", ".a", "a..b", "a.b.c", "[a", '"a', "a b", "[].a", "a]b", "[a]b"])
def test_refused(text: str) -> None:
    with pytest.raises(PatternError, match="table pattern"):
        parse_pattern(text)


@pytest.mark.parametrize("text", ["a.b*", "*.b", "*", "a.*b", "a\\*", "[*].b*"])
def test_a_name_means_one_table(text: str) -> None:
    with pytest.raises(PatternError, match="is to name one table"):
        parse_name(text)


@pytest.mark.parametrize("text", ["orders", "sales.orders", "[a*].[50%]", "a_b.c%", "[\\].t", 'x."y*"'])
def test_a_name_is_read_as_patterns_are(text: str) -> None:
    assert parse_name(text) == parse_pattern(text)


names = st.text(st.sampled_from("ab%_[]*.\"\\ '"), min_size=1, max_size=6)


@given(names, names, names, names)
def test_a_quoted_name_matches_itself_alone(schema: str, table: str, other_schema: str, other_table: str) -> None:
    quoted = "[" + schema.replace("]", "]]") + "]." + '"' + table.replace('"', '""') + '"'
    pattern = parse_pattern(quoted)
    assert pattern.schema is not None
    assert like(pattern.schema, other_schema) == (schema == other_schema)
    assert like(pattern.table, other_table) == (table == other_table)
    assert (literal(schema, table).schema, literal(schema, table).table) == (pattern.schema, pattern.table)


@given(st.text("ab*_%", min_size=1, max_size=6), st.text("ab_%", min_size=1, max_size=6))
def test_a_star_stands_for_any_characters(pattern: str, name: str) -> None:
    expected = re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), name) is not None
    assert like(parse_pattern(pattern).table, name) == expected
