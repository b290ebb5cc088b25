"""Commands in an advice, as they can be typed."""

import shlex

import pytest

from airflow_provider_mssql_cdc.cli import parser
from airflow_provider_mssql_cdc.cli.checkpoint import _identity
from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.commands import whole
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE
from airflow_provider_mssql_cdc.core.table import TableName

TARGET = "iceberg://lake/shop"
PLAIN = Identity("shop_conn", "Shop", TableName("sales", "orders"), TARGET)
ODD = Identity("c", "My Shop", TableName("sa.les", "it's $here"), "delta+file:///ab", "all_x")


def commands(text):
    """What stands between backticks, as a shell reads it."""
    return [shlex.split(part) for part in text.split("`")[1::2]]


def test_a_command_has_all_its_arguments():
    said = whole("First `mssql-cdc checkpoint reset --shape mirror`, then `mssql-cdc checkpoint list`.", PLAIN)
    assert said == (
        "First `mssql-cdc checkpoint reset --conn shop_conn --database Shop --table sales.orders "
        "--target iceberg://lake/shop --shape mirror`, then `mssql-cdc checkpoint list`."
    )
    assert whole("`mssql-cdc checkpoint set --position 0x1`", PLAIN).endswith(f"--target {TARGET} --position 0x1`")
    assert whole(RESET_ADVICE, PLAIN).count("--conn shop_conn") == 2


@pytest.mark.parametrize("identity", [PLAIN, ODD])
def test_the_command_line_reads_it(identity):
    for words in commands(whole(RESET_ADVICE, identity)):
        given = parser().parse_args(words[1:])
        assert _identity(given) == identity
