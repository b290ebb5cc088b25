"""Hypothesis strategies for the core's values."""

import datetime

from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Identity, SinkState
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName

lsns = st.integers(1, 2**80 - 2).map(lambda number: Lsn(number.to_bytes(10, "big")))
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
moments = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
witnesses = st.builds(Witness, lsns, moments, st.none() | names)
failures = st.builds(Failure, names, moments)


@st.composite
def sink_states(draw):
    low, high = sorted([draw(lsns), draw(lsns)])
    return SinkState(
        low,
        high,
        draw(st.none() | witnesses),
        draw(st.none() | names),
        draw(st.none() | st.builds(FeedRef, names, st.integers(1, 2**31 - 1), st.none() | moments)),
        draw(st.none() | names),
        draw(st.booleans()),
        failed=draw(st.none() | failures),
    )


checkpoints = st.builds(
    Checkpoint,
    identity=st.builds(Identity, names, names, st.builds(TableName, names, names), names),
    sinks=st.dictionaries(st.sampled_from(["mirror", "history"]), sink_states()),
    announced=st.none() | lsns,
    updated_at=st.none() | moments,
)
