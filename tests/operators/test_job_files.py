import itertools
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import fsspec
import pytest
from airflow.sdk.io import attach

from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.exceptions import ReceiptMissingError, WorkDirError
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.operators import job_files


def make_spec(work_dir, id="a1") -> JobSpec:
    return JobSpec(
        id,
        SourceSpec("db:1433", "shop", "jdbc:sqlserver://;serverName={db}"),
        (),
        Cut.at(Lsn(bytes(9) + b"\x01")),
        str(work_dir),
    )


def test_the_spec_reads_back_from_where_it_was_written(tmp_path):
    spec = make_spec(tmp_path / "work")
    job_files.write_spec(spec)
    assert job_files.read_spec(spec.path) == spec


def test_a_url_of_a_local_file_is_local(tmp_path):
    assert job_files.is_local(str(tmp_path))
    assert job_files.is_local(f"file://{tmp_path}")
    assert not job_files.is_local("s3a://bucket/work")
    spec = make_spec(f"file://{tmp_path}/work")
    job_files.write_spec(spec)
    assert (tmp_path / "work" / "a1" / "spec.json").exists()


@pytest.mark.parametrize("name", ["spec.json", "code.zip"])
def test_a_spec_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch, name):
    write = {"spec.json": Path.write_text, "code.zip": Path.write_bytes}[name]

    def full(path, data, *more):
        if path.name == name:
            write(path, data[:10], *more)
            raise OSError(28, "No space left on device", str(path))
        return write(path, data, *more)

    monkeypatch.setattr(Path, write.__name__, full)
    with pytest.raises(WorkDirError) as error:
        job_files.write_spec(make_spec(tmp_path))
    assert not error.value.permanent
    assert str(error.value) == (
        f"the job spec cannot be written to work_dir {tmp_path}: No space left on device. Make room there, or give "
        "Airflow the right to write there, or name another work_dir that Airflow and Spark both read."
    )
    assert os.listdir(tmp_path) == []


def test_the_code_runs_where_the_package_is_not_installed(tmp_path):
    spec = make_spec(tmp_path)
    job_files.write_spec(spec)
    code = job_files.code_path(spec)
    with zipfile.ZipFile(code) as archive:
        names = archive.namelist()
    assert "airflow_provider_mssql_cdc/core/position.py" in names
    assert "airflow_provider_mssql_cdc/spark/job.py" in names
    assert not [name for name in names if "/hooks/" in name or "/sandbox/" in name]
    script = f"""
import sys
sys.path.insert(0, {code!r})
from airflow_provider_mssql_cdc.core import spec
print(spec.__file__)
"""
    # -S leaves site-packages out, and with them the installed package
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.startswith(code)


def test_no_receipt_is_an_error_that_says_what_to_do(tmp_path):
    spec = make_spec(tmp_path)
    with pytest.raises(ReceiptMissingError, match=r"receipt\.json.*can be repeated"):
        job_files.read_receipt(spec)


def test_another_jobs_receipt_is_not_believed(tmp_path):
    spec = make_spec(tmp_path)
    job_files.write_spec(spec)
    job_files.open_path(spec.receipt_path).write_text(to_json(Receipt("other", ())))
    with pytest.raises(ReceiptMissingError, match="answers spec other"):
        job_files.read_receipt(spec)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 1}'])
def test_a_damaged_receipt_is_not_believed(tmp_path, text):
    spec = make_spec(tmp_path)
    job_files.write_spec(spec)
    job_files.open_path(spec.receipt_path).write_text(text)
    with pytest.raises(ReceiptMissingError, match=r"receipt\.json cannot be read.*receipt") as error:
        job_files.read_receipt(spec)
    assert not error.value.permanent


def test_a_work_dir_that_is_no_folder_is_named_when_the_spec_is_written(tmp_path):
    spec = make_spec(tmp_path / "file")
    (tmp_path / "file").write_text("")
    job_files.remove_old(spec.work_dir)
    with pytest.raises(WorkDirError, match=r"work_dir .*file: Not a directory"):
        job_files.write_spec(spec)


YESTERDAY = time.time() - 90_000


def make_old(folder: Path) -> None:
    """Let nothing in a folder have changed for more than a day."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (YESTERDAY, YESTERDAY))


def test_only_folders_of_old_jobs_are_removed(tmp_path):
    old, new = make_spec(tmp_path, "old"), make_spec(tmp_path, "new")
    for spec in (old, new):
        job_files.write_spec(spec)
    (tmp_path / "not a job").mkdir()
    (tmp_path / "a file").touch()
    (tmp_path / "nowhere").symlink_to("nowhere")
    for folder in ("old", "not a job", "a file"):
        make_old(tmp_path / folder)
    job_files.remove_old(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["a file", "new", "not a job", "nowhere"]


def test_a_folder_that_may_not_be_read_stays(tmp_path, monkeypatch):
    """As lost+found of a mounted disk; root, as whom tests may run, can read everything."""
    job_files.write_spec(make_spec(tmp_path, "old"))
    make_old(tmp_path / "old")
    (tmp_path / "lost+found").mkdir()

    class Denying(type(tmp_path)):
        def stat(self, **given):
            if "lost+found" in self.parts:
                raise PermissionError(13, "Permission denied", str(self))
            return super().stat(**given)

    monkeypatch.setattr(job_files, "Path", Denying)
    job_files.remove_old(str(tmp_path))
    assert os.listdir(tmp_path) == ["lost+found"]


def test_a_job_that_still_writes_is_not_old(tmp_path):
    spec = make_spec(tmp_path)
    job_files.write_spec(spec)
    part = job_files.open_path(spec.staging_path) / "orders" / "part-0.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"PAR1")
    make_old(tmp_path / "a1")
    os.utime(part)
    job_files.remove_old(str(tmp_path))
    assert part.exists()
    make_old(tmp_path / "a1")
    job_files.remove_old(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_where_a_store_tells_no_times_nothing_is_old(tmp_path):
    attach("memory", fs=fsspec.filesystem("memory"))
    spec = make_spec(f"memory://old/{tmp_path.name}")
    job_files.write_spec(spec)
    job_files.remove_old(spec.work_dir)
    assert job_files.read_spec(spec.path) == spec


def test_removing_takes_the_staged_rows_along(tmp_path):
    spec = make_spec(tmp_path)
    job_files.write_spec(spec)
    staged = job_files.open_path(spec.staging_path)
    staged.mkdir()
    (staged / "part-0.parquet").write_bytes(b"PAR1")
    job_files.remove(spec)
    job_files.remove(spec)
    assert os.listdir(tmp_path) == []


class Killed(BaseException):
    """As SIGKILL: nothing of what was begun goes on."""


def test_what_a_removal_that_was_killed_has_left_is_removed_when_it_is_old(tmp_path, monkeypatch):
    unlink, rmdir, left = os.unlink, os.rmdir, []

    def limited(does):
        def step(*arguments, **named):
            if not left:
                raise Killed
            left.pop()
            does(*arguments, **named)

        return step

    monkeypatch.setattr(os, "unlink", limited(unlink))
    monkeypatch.setattr(os, "rmdir", limited(rmdir))
    for steps in itertools.count():
        spec = make_spec(tmp_path, f"{steps:012x}")
        left[:] = [None] * 99
        job_files.write_spec(spec)
        folder = job_files.open_path(spec.path).parent
        (folder / "staged" / "orders").mkdir(parents=True)
        for name in ("receipt.json", "staged/orders/part-0.parquet", ".receipt.json.123"):
            (folder / name).touch()
        left[:] = [None] * steps
        try:
            job_files.remove(spec)
        except Killed:
            pass
        else:
            break
        left[:] = [None] * 99
        make_old(folder)
        job_files.remove_old(str(tmp_path))
        assert os.listdir(tmp_path) == []
    assert steps == 8


def test_what_a_job_writes_after_its_folder_was_removed_goes_when_it_is_old(tmp_path):
    """An application that was ended goes on for a moment; what others keep under such a name is none of it."""
    for folder, name in (("0123456789ab", "staged/a/part-0.parquet"), ("ba9876543210", "staged/part-0.parquet")):
        (tmp_path / folder / name).parent.mkdir(parents=True)
        (tmp_path / folder / name).touch()
    (tmp_path / "ba9876543210" / "of others").touch()
    (tmp_path / "aaaaaaaaaaaa" / "receipt.json").mkdir(parents=True)
    for folder in os.listdir(tmp_path):
        make_old(tmp_path / folder)
    (tmp_path / "bbbbbbbbbbbb" / "staged").mkdir(parents=True)
    job_files.remove_old(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["ba9876543210", "bbbbbbbbbbbb"]


def test_two_may_remove_one_folder(tmp_path):
    attach("memory", fs=fsspec.filesystem("memory"))
    spec = make_spec(f"memory://both/{tmp_path.name}")
    job_files.write_spec(spec)
    job_files.remove(spec)
    job_files.remove(spec)
    assert not job_files.open_path(spec.path).parent.exists()
