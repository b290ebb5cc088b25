"""``mssql-cdc warm``, from the rehearsal to an archive that Java takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.operators import class_archive, jars


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the jars, and the archive, that there are, and a Spark without a folder of settings."""
    folder = tmp_path / "jars"
    folder.mkdir(mode=0o700)
    there = jars.folder()
    for each in there.glob("*") if there.is_dir() else ():
        if (each.is_dir() and not each.name.startswith(".")) or each.suffix == ".jsa":
            (folder / each.name).symlink_to(each)
    monkeypatch.setenv(jars.FOLDER, str(folder))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    return folder


@pytest.mark.in_turn
def test_the_classes_of_a_load_are_kept_once(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm"]) == 0
    archive = class_archive.found("spark-submit", os.environ)
    assert archive is not None
    assert archive.parent == kept
    assert capsys.readouterr().out.splitlines()[-1].startswith(str(archive))
    made = archive.stat().st_mtime_ns
    # what only a window of changes needs is in it, and Java takes it
    assert b"org/apache/spark/sql/catalyst/plans/logical/MergeIntoTable" in archive.read_bytes()
    assert class_archive.driver("spark-submit", os.environ).fits(archive)

    assert main(["warm"]) == 0
    assert archive.stat().st_mtime_ns == made
    assert capsys.readouterr().out == f"{archive} is there, and fits.\n"


def test_a_folder_of_settings_is_told_before_anything_is_made(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "log4j2.properties").touch()
    assert main(["warm"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("mssql-cdc warm: Spark's class path has the folder ")


def test_a_missing_java_is_told(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["warm"]) == 2
    assert "Spark needs Java 17 or 21" in capsys.readouterr().err


def test_a_full_or_forbidden_folder_is_told(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.chmod(0o777)
    assert main(["warm"]) == 2
    assert f"{kept} can be written by other users" in capsys.readouterr().err
