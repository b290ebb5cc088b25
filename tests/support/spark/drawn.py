"""A hundred histories drawn at once, since Spark takes seconds for each window, however small."""

import os
import secrets
from random import Random

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.marker import LAYOUT
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning
from airflow_provider_mssql_cdc.spark.shapes.history import History
from airflow_provider_mssql_cdc.spark.shapes.mirror import Mirror
from airflow_provider_mssql_cdc.spark.shapes.scd2 import Versions
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.sources.cdc.query import RAW_COLUMNS, raw_schema
from tests.support.spark import model
from tests.support.spark.rows import local

SPEC = model.table_spec()
MAPPINGS = map_columns(SPEC.name, SPEC.schema)
TABLE = TableRows(SPEC, MAPPINGS, "UTC")
DDL = "h INT, id INT, name STRING, doc STRING, `old text` STRING"

# Hypothesis tries 0 first, and one example is all that a run has time for: each run has a beginning of its own
_SALT = secrets.randbits(32)
seeds = st.integers(0, 2**32 - 1).map(lambda number: number ^ _SALT)

# nothing is shrunk: that would take minutes; MSSQL_CDC_TEST_EXAMPLES asks for more
few = settings(
    max_examples=int(os.environ.get("MSSQL_CDC_TEST_EXAMPLES", "1")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


def draw(seed, **how):
    """Histories that share a table, and two cuts."""
    random = Random(seed)
    low = random.randint(5, 60)
    return [model.random_history(random, number, **how) for number in range(100)], low, random.randint(low, 95)


def frame(session, rows, mappings=MAPPINGS):
    """Make rows of several partitions in the order of the list, as slices are; each partition is shuffled inside."""
    half = len(rows) // 2
    while 0 < half < len(rows) and rows[half][0] == rows[half - 1][0]:
        half += 1
    parts = [rows[:half][::-1], rows[half:][::-1]]
    frames = [local(session, part, raw_schema(mappings)).coalesce(1) for part in parts if part]
    if not frames:
        return local(session, [], raw_schema(mappings))
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def before(captures, cut):
    """What a mirror holds at the cut."""
    return [(c.history, id_, *values) for c in captures for id_, values in c.state(cut).items()]


def mirror_of(table=TABLE, deletes="hard"):
    """A mirror of the table."""
    return Mirror(table, SinkSpec("mirror", ("lake", "n", "t"), None, None, deletes=deletes))


def history_of(table=TABLE, **options):
    """A history of the table."""
    return History(table, SinkSpec("history", ("lake", "t"), None, None, history=HistoryOptions(**options)))


def versions_of(table=TABLE):
    """A table of versions."""
    return Versions(table, SinkSpec("scd2", ("lake", "t"), None, None))


class Copied:
    """A copy with these rows, and events where a test asks what it leaves open.

    :ivar again: rows that were read by their keys
    """

    def __init__(self, rows, window=None, events=None, again=None):
        self._rows, self.window, self.events, self.again = rows, window, events, again
        self.id, self.conditions = "", ()

    @property
    def low(self):
        return self.window.after

    @property
    def high(self):
        return self.window.upto

    def rows(self):
        return self._rows if self.again is None else self.again.in_place(self._rows)


def copied(session, rows):
    """Rows as they are copied from the table."""
    return local(session, rows, DDL)


WITHOUT_LOBS = model.table_spec(columns=model.COLUMNS[:3], unique_key=False)
"""A table with a key that the server does not enforce, and nothing that CDC leaves out."""


def staged_as(spec, session, folder, rows, window):
    """Stage rows of the first columns, as they are read where the user chose the key; with the table."""
    mappings = map_columns(spec.name, spec.schema)
    width = len(RAW_COLUMNS) + len(spec.schema.columns)
    raw = frame(session, [row[:width] for row in rows], mappings)
    staged = stage(raw, spec.schema, mappings, [window], str(folder / "events"), history=True)
    return TableRows(spec, mappings, "UTC"), staged


def staged_events(session, folder, captures, low, high):
    """Stage the events of a window; with the window."""
    window = Window(model.lsn(low), model.lsn(high))
    rows = frame(session, model.raw_rows(captures, low, high))
    return window, stage(rows, SPEC.schema, MAPPINGS, [window], str(folder / "events"), history=True)


def at_low(history, window, staged, copy):
    """What a history begins with, and all rows that it has after a first load."""
    target = local(copy.sparkSession, [], ", ".join(f"`{column.name}` {column.type}" for column in history.columns()))
    first = history.laid_out(history.first(Beginning(window, staged, Copied(copy)), target), LAYOUT).rows.collect()
    return [row for row in first if row["_op"] == "R"], first
