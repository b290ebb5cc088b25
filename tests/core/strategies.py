"""Hypothesis strategies for the core's values."""

import datetime

from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import (
    Checkpoint,
    Failure,
    Identity,
    InstanceRef,
    SinkState,
    Witness,
)
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.table import TableName

lsns = st.integers(1, 2**80 - 2).map(lambda number: Lsn(number.to_bytes(10, "big")))
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
moments = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
witnesses = st.builds(Witness, lsns, moments, st.none() | names)


@st.composite
def sink_states(draw):
    low, high = sorted([draw(lsns), draw(lsns)])
    return SinkState(low, high, draw(st.none() | witnesses), draw(st.none() | names))


checkpoints = st.builds(
    Checkpoint,
    identity=st.builds(Identity, names, names, st.builds(TableName, names, names), names),
    sinks=st.dictionaries(st.sampled_from(["mirror", "history"]), sink_states()),
    instance=st.none() | st.builds(InstanceRef, names, st.integers(1, 2**31 - 1), moments),
    schema_hash=st.none() | names,
    columns=st.lists(names, max_size=3).map(tuple),
    failed=st.none() | st.builds(Failure, names, moments),
    announced=st.none() | lsns,
    updated_at=st.none() | moments,
)
