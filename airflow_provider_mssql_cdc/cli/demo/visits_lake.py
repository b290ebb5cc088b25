"""A plain look at the big table's targets: a Spark process that reads them."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo import lake
from airflow_provider_mssql_cdc.cli.demo.visits import EVENTS, MARK, VISITS

# of one transaction a key has one change here, of which the image before comes first
_NTH = "CAST(ROW_NUMBER() OVER (PARTITION BY visit_id ORDER BY _lsn, _seq) AS INT)"


def queries() -> dict[str, str]:
    """What is read: the mirror, the rows that the history says there are now, and its changes in their order."""
    names = ", ".join(EVENTS.names)
    history = f"{lake.mirror(VISITS)}_history"
    # a gap is healed by all rows as of one position; which rows went within the gap, no event tells
    healed = f"SELECT * FROM {history} WHERE _lsn >= (SELECT MAX(_lsn) FROM {history} WHERE _op = 'R')"
    return {
        "mirror": f"SELECT * FROM {lake.mirror(VISITS)}",
        "history": lake.newest_rows(VISITS, f"({healed})"),
        "events": f"SELECT {names} FROM (SELECT *, {_NTH} AS nth FROM {history} WHERE _op <> 'R' AND page <> '{MARK}')",
    }


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the targets as soon as that is asked for."""
    spark = lake.open_session(warehouse, packages)
    lake.when_asked(spark, lambda: lake.export(spark, Path(folder), queries()))


if __name__ == "__main__":
    main(*sys.argv[1:])
