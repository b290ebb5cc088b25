"""What table formats share: names and texts in Spark SQL, CREATE TABLE, MERGE, the columns compared, and settings."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.formats import COLUMN_MAPPING
from airflow_provider_mssql_cdc.spark.targets import Difference, Write


def quoted(name: str) -> str:
    """An identifier."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def packed(value: Any) -> str:
    """JSON as the value of a table property: hex digits, which neither need quotes nor look like a secret.

    ``SHOW TBLPROPERTIES`` shows no value in which Spark finds the likes of ``password`` or ``url``, be it in the name
    of a table (docs: spark.redaction.regex, spark.sql.redaction.options.regex).
    """
    return zlib.compress(json.dumps(value).encode(), 9).hex()


def unpacked(text: str) -> Any:
    """What ``packed`` has packed, or what version 0.1.0 wrote as it is; None for what Spark does not show."""
    try:
        return json.loads(text if text.startswith("{") else zlib.decompress(bytes.fromhex(text)))
    except (ValueError, zlib.error):
        return None


log = logging.getLogger(__name__)

TYPE_WIDENING = "delta.enableTypeWidening"
"""Table property of Delta: columns may get wider types, for readers that know of it."""

PROBE = "mssql_cdc_probe_"
"""Begins the name of a table that is made to see whether one can be made."""


def create_table(
    session: SparkSession,
    target: str,
    file_format: str,
    columns: Sequence[TargetColumn],
    partition_by: Sequence[str],
    properties: Mapping[str, str],
) -> None:
    """Create a table unless it exists.

    :param target: the table in Spark SQL
    :param file_format: as ``USING`` takes it
    :param partition_by: Spark SQL partition expressions
    """
    declared = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
    partitions = f" PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    settled = ", ".join(f"{text(name)} = {text(value)}" for name, value in sorted(properties.items()))
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {target} ({declared}) USING {file_format}{partitions} TBLPROPERTIES ({settled})"
    )


def merge(
    session: SparkSession,
    target: str,
    columns: Sequence[str],
    write: Write,
    *,
    within: Sequence[str] = (),
    inserts: bool = True,
    evolves: bool = False,
) -> None:
    """Run the MERGE that puts and deletes rows by key.

    :param target: the table in Spark SQL
    :param columns: all its columns
    :param within: conditions on rows of the table ``t`` that each row with one of the keys meets
    :param inserts: whether rows whose key is not there are put too
    :param evolves: whether the table gets the columns that it lacks, where the format can do so
    """
    names = [quoted(name) for name in columns]
    equal = "<=>" if write.nullable_key else "="
    same = (f"t.{quoted(name)} {equal} s.{quoted(name)}" for name in write.key)
    condition = " AND ".join((*same, *within))
    insert = (
        f" WHEN NOT MATCHED AND s._op NOT IN ('D', 'B') THEN INSERT ({', '.join(names)})"
        f" VALUES ({', '.join(f's.{c}' for c in names)})"
    )
    # a column that the table lacks is none of t yet
    t = "" if evolves else "t."
    view = f"mssql_cdc_{secrets.token_hex(8)}"
    write.rows.createOrReplaceTempView(view)
    try:
        session.sql(
            f"MERGE {'WITH SCHEMA EVOLUTION ' if evolves else ''}INTO {target} t USING {view} s ON {condition}"
            " WHEN MATCHED AND s._op IN ('D', 'B') THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{t}{c} = s.{c}' for c in names)}{insert if inserts else ''}"
        )
    finally:
        session.catalog.dropTempView(view)


def create_and_drop(session: SparkSession, namespace: Sequence[str], format_: str) -> None:
    """Create the namespace unless it exists, and in it a table that is dropped again."""
    place = ".".join(map(quoted, namespace))
    probe = f"{place}.{PROBE}{secrets.token_hex(4)}"
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {place}")
    session.sql(f"CREATE TABLE {probe} (x INT) USING {format_}")
    try:
        # Iceberg's catalogs keep the files of a table that is dropped without it
        session.sql(f"DROP TABLE {probe}{' PURGE' if format_ == 'iceberg' else ''}")
    except Exception as error:
        log.warning("table %s, which was made to see whether one can be made, was not dropped: %s", probe, error)


def difference(
    session: SparkSession,
    target: str,
    columns: Sequence[TargetColumn],
    types: Mapping[str, str] | None = None,
    hidden: str | None = None,
) -> Difference | None:
    """How a table's columns differ from the expected ones; None where they do not.

    :param target: the table in Spark SQL
    :param types: Spark types that the format holds as another
    :param hidden: begins the names of columns that do not count
    """
    declared = ", ".join(f"{quoted(c.name)} {(types or {}).get(c.type, c.type)}" for c in columns)
    expected = {f.name: f.dataType.simpleString() for f in session.createDataFrame([], declared).schema}
    fields = [f for f in session.table(target).schema.fields if hidden is None or not f.name.startswith(hidden)]
    found = {f.name: f.dataType.simpleString() for f in fields}
    return None if expected == found else Difference(expected, found)


def widen(session: SparkSession, target: str, columns: Sequence[TargetColumn], name: str) -> None:
    """Give columns types that hold each value of theirs as it is; one statement for each, which may run twice.

    :param target: the table in Spark SQL
    :param name: the table for people
    :raises TargetError: if the table cannot have these
    """
    for column in columns:
        try:
            session.sql(f"ALTER TABLE {target} ALTER COLUMN {quoted(column.name)} TYPE {column.type}").collect()
        except AnalysisException as error:
            raise TargetError(
                f"{name} cannot hold column {column.name} as {column.type}, its type in the source by now: "
                f"{str(error).splitlines()[0]}",
                advice=f"A Delta table takes it once it has the property {TYPE_WIDENING} = true, which locks out "
                "readers that do not know of it (docs: Delta type widening). Else load into another table.",
            ) from error


def rename(session: SparkSession, target: str, columns: Mapping[str, str], name: str) -> None:
    """Give columns other names, one statement for each.

    :param target: the table in Spark SQL
    :param columns: name to the one that it gets
    :param name: the table for people
    :raises TargetError: if the table cannot have these
    """
    for old, new in columns.items():
        try:
            session.sql(f"ALTER TABLE {target} RENAME COLUMN {quoted(old)} TO {quoted(new)}").collect()
        except AnalysisException as error:
            raise TargetError(
                f"{name} cannot rename column {old} to {new}, as it is called in the source by now: "
                f"{str(error).splitlines()[0]}",
                advice="Where another run has just renamed it, run the task again. A Delta table renames columns once "
                f"it has the property {COLUMN_MAPPING} = name, which locks out readers that do not know of it (docs: "
                "Delta column mapping). Else load into another table.",
            ) from error


def with_names(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """The rows with other names of columns, all at once: one may get a name that another one gives away.

    :param names: name to the one that it gets
    """
    return rows.select(*(F.col(quoted(name)).alias(names.get(name, name)) for name in rows.columns))


def drop(session: SparkSession, target: str, columns: Sequence[str], name: str) -> None:
    """Drop columns, in one statement, as far as they are there.

    :param target: the table in Spark SQL
    :param name: the table for people
    :raises TargetError: if the table cannot lose these
    """
    there = session.table(target).columns
    if not (found := [column for column in columns if column in there]):
        return
    try:
        session.sql(f"ALTER TABLE {target} DROP COLUMNS ({', '.join(map(quoted, found))})").collect()
    except Exception as error:
        # what Java throws is not always a PySparkException
        raise TargetError(
            f"{name} cannot drop {', '.join(found)}, which the source table has dropped: {str(error).splitlines()[0]}",
            advice="Where another run has just dropped it, run the task again. A Delta table drops columns once it has "
            f"the property {COLUMN_MAPPING} = name, which locks out readers that do not know of it (docs: Delta column "
            'mapping). dropped_columns="keep" leaves the column as it is.',
        ) from error


def different_columns(name: str, difference: Difference, *, is_new: bool = False) -> TargetError:
    """The error of a table whose columns are not the expected ones.

    :param name: the table for people
    :param is_new: it has no rows, and no load has ever committed to it
    """
    expected, found = difference.expected, difference.found
    missing = {column: type_ for column, type_ in expected.items() if column not in found}
    extra = {column: type_ for column, type_ in found.items() if column not in expected}
    others = {c: t for c, t in expected.items() if c in found and found[c] != t}
    said, advice = [], []
    if is_new:
        # as a run leaves it that is killed before its first commit
        advice.append("It is empty, and was never loaded: drop it, and the next run makes it with the columns of now.")
    if missing:
        said.append(f"missing: {_listed(missing)}")
    if extra:
        said.append(f"extra, of no load: {_listed(extra)}")
        columns = "column" if len(extra) == 1 else "columns"
        taken_back = f"Dropping the {columns} {', '.join(extra)} takes back what was added by hand"
        renamed = " (or renaming, where a missing one was renamed)" if missing else ""
        advice.append(f"{taken_back}{renamed}.")
    if others:
        said.append("of another type: " + ", ".join(f"{c} {found[c]}, not {type_}" for c, type_ in others.items()))
    if others or (missing and not extra):
        advice.append(
            "Restore the table as the last load left it: a column that is only added again has lost its values. "
            "One that the source got since is to be added."
        )
    return TargetError(
        f"{name} does not have the columns that this load writes; {'; '.join(said) or 'their order is another'}.",
        advice=f"{' '.join(advice)} Or choose another target or table_name, or rename the table.",
    )


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{column} {type_}" for column, type_ in columns.items())


@contextlib.contextmanager
def settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set settings of the session meanwhile."""
    before = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
