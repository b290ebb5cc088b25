"""How many rows a copy that fills columns is going to touch, told before it begins."""

from __future__ import annotations

from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def told_of_rows(hook: MsSqlCdcHook, plan: RunPlan) -> list[str]:
    """A text for each table whose sinks lack columns, and of which no copy is under way yet that fills them; and one
    where histories get no rows with them.

    The targets' own rows cannot be counted without Spark: they have about as many as the source table.
    """
    begin, filled = {}, set()
    for spec in plan.specs:
        candidate = plan.candidates[spec.name]
        copies = candidate.checkpoint.copies if candidate.checkpoint is not None else ()
        if any(copy.fills for copy in copies):
            continue
        if spec.fills and candidate.lagging:
            filled.add(spec.name)
        if spec.name in filled or candidate.left_out:
            begin[spec.name] = candidate
    if not begin:
        return []
    counts = hook.row_counts([candidate.feed.source_object_id for candidate in begin.values()])
    told = []
    for name, candidate in begin.items():
        rows = counts.get(candidate.feed.source_object_id, 0)
        if name in filled:
            columns = ", ".join(sorted({column for columns in candidate.lagging.values() for column in columns}))
            told.append(
                f"{name}: to fill {columns}, the key and these columns of {rows:,} rows are copied (of a table of "
                "which nearly all first rows have the same values there, only the others); all rows of "
                f"{', '.join(candidate.lagging)} that get a value are written, also those that are not copied: up to "
                f"about {rows:,} in each, and more where it holds older versions"
            )
        told += [
            f"{name}: {shape} gets no rows with {', '.join(each.columns)} for the {rows:,} rows of the table, since "
            f"{each.why}"
            for shape, each in candidate.left_out.items()
        ]
    return told
