"""Small texts and staged folders, on this machine or wherever Spark reads and writes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_provider_mssql_cdc.spark.ended_reads import read_again


@dataclass(frozen=True, slots=True)
class Parquet:
    """Rows in the files that one successful write made.

    :param files: exactly these are read; what a killed or a second try of a task leaves beside them never is
    """

    session: SparkSession
    files: tuple[str, ...]
    schema: StructType

    @classmethod
    def of(cls, session: SparkSession, files: Sequence[str], columns: str) -> Parquet:
        """Rows in files that were written before.

        :param columns: as Spark's JSON of a schema
        """
        return cls(session, tuple(files), StructType.fromJson(json.loads(columns)))

    def rows(self) -> DataFrame:
        """The rows."""
        if not self.files:
            return self.session.createDataFrame([], self.schema)
        return self.session.read.schema(self.schema).parquet(*map(no_pattern, self.files))


def write_rows(frame: DataFrame, folder: str) -> Parquet:
    """Write rows to Parquet files in a folder that must not exist yet."""
    # what a read that was a deadlock's victim left there is written over
    read_again(lambda number: frame.write.mode("overwrite" if number else "errorifexists").parquet(folder))
    session, schema = frame.sparkSession, frame.schema
    # Spark names files as URIs here, and takes paths there
    files = sorted(unquote(file) for file in session.read.schema(schema).parquet(no_pattern(folder)).inputFiles())
    return Parquet(session, tuple(files), schema)


def no_pattern(path: str) -> str:
    """A path as Spark reads it, which takes paths for patterns."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def is_local(path: str) -> bool:
    """Whether a path names a file of this machine."""
    return "://" not in path or path.startswith("file://")


def read_text(session: SparkSession, path: str) -> str:
    """The text of a file."""
    if is_local(path):
        return local_path(path).read_text(encoding="utf-8")
    text: str = session.read.text(path, wholetext=True).collect()[0]["value"]
    return text


def write_text(session: SparkSession, path: str, text: str) -> None:
    """Write one line of text, so that a reader sees all of it or nothing.

    At a URL it becomes a folder with one ``part-`` file, and counts once ``_SUCCESS`` lies beside that.
    """
    if is_local(path):
        target = local_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    else:
        session.createDataFrame([(text,)], "value STRING").coalesce(1).write.mode("overwrite").text(path)


def remove(session: SparkSession, path: str) -> None:
    """Remove staged rows.

    At a URL the rows go, and an empty folder stays for the operator to remove: Spark has no other way to delete.
    """
    if is_local(path):
        shutil.rmtree(local_path(path), ignore_errors=True)
    else:
        session.createDataFrame([], "value STRING").write.mode("overwrite").parquet(path)


def check_folder(path: str) -> None:
    """Prove that files can be written into a folder. Of a URL nothing is asked: whoever looks for a table asks there.

    :raises OSError: what the disk says
    """
    if is_local(path):
        folder = local_path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass


def local_path(path: str) -> Path:
    """The path of a file of this machine."""
    return Path(path.removeprefix("file://"))
