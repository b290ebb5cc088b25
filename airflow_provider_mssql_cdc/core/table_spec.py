"""The part of the job spec that a table has, of what a plan has found out of it."""

from __future__ import annotations

from typing import Any

from airflow_provider_mssql_cdc.core.adding import unnamed
from airflow_provider_mssql_cdc.core.changes import DEFAULT
from airflow_provider_mssql_cdc.core.initial import WITH_COPY
from airflow_provider_mssql_cdc.core.key import named_key
from airflow_provider_mssql_cdc.core.plan import Candidate, takes_copy
from airflow_provider_mssql_cdc.core.rekeying import rekeys
from airflow_provider_mssql_cdc.core.shapes import HARD, SHAPES
from airflow_provider_mssql_cdc.core.spec import SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table_options import TableOptions


def table_spec(candidate: Candidate, options: TableOptions) -> TableSpec:
    """The table's part of the job spec."""
    return TableSpec(
        name=candidate.name,
        feed=candidate.feed,
        schema=candidate.schema,
        unique_key=candidate.unique_key,
        copy_by=options.copy_by,
        grows=candidate.fills,
        fills=bool(candidate.lagging),
        history_fill=options.history_fill,
        loaded_with=dict(candidate.loaded_with),
        widens=bool(options.follows_types),
        rekeys=rekeys(options),
        named_key=named_key(candidate.feed, options.key),
        incompatible=options.incompatible_types,
        leaves_null=options.leaves_null,
        lacks=candidate.adding.lacks(candidate.feed) if candidate.adding is not None else (),
        unnamed_ids=unnamed(candidate.feed, options),
        source_object_id=candidate.adding.source_object_id if candidate.adding is not None else None,
        selection=candidate.selection,
        ddl=candidate.ddl,
        altered_at=candidate.altered_at,
        sinks=tuple(
            SinkSpec(
                shape=shape,
                table=options.target.table(options.table_name, candidate.name, shape),
                read_through=stands.read_through if (stands := candidate.stands(shape)) else None,
                expects=stands.applied if stands else None,
                lost_after=candidate.lost_after.get(shape),
                asserted=candidate.asserted(shape),
                # it has none of the columns that the expressions are about
                partition_by=options.partition_by if SHAPES[shape].has_data else (),
                properties=dict(options.table_properties),
                format=options.target.format,
                deletes=options.deletes if SHAPES[shape].takes_deletes else HARD,
                history=options.history if SHAPES[shape].takes_history else DEFAULT,
                initial=options.initial if SHAPES[shape].takes_initial and state is None else WITH_COPY,
                ddl_upto=state.ddl_upto if state else None,
                unfilled=state.unfilled if state else (),
                rekeyed=shape in candidate.rekeyed,
                closes_gaps=_closes_gaps(candidate, options, shape),
                **_kept(candidate, shape),
            )
            for shape, state in candidate.sinks.items()
        ),
        healing=candidate.healing,
    )


def _closes_gaps(candidate: Candidate, options: TableOptions, shape: str) -> bool:
    if candidate.feed.CAN.captured:
        return candidate.healing is not None and (options.copies_on_gap or takes_copy(candidate, options, shape))
    return options.copies_on_gap


def _kept(candidate: Candidate, shape: str) -> dict[str, Any]:
    """What the checkpoint keeps of versions that heal gaps."""
    stored = candidate.checkpoint.loaded.get(shape) if candidate.checkpoint is not None else None
    if stored is None or candidate.healing is None:
        return {}
    return {"positions": stored.positions, "applied": stored.applied}
