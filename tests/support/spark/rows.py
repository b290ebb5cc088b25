"""Rows of a test as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType


def local(session: SparkSession, rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
    """The rows as a DataFrame; those of a list would go through a Python worker each time they are used.

    :param ddl: of the columns, in Spark SQL
    """
    schema = DataType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    fields = to_arrow_schema(schema)
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=fields), schema)
