"""The folder that Airflow and the Spark job share: the spec, the code, the receipt."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import logging
import re
import shutil
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import airflow_provider_mssql_cdc
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.exceptions import FormatError, NewerFormatError, ReceiptMissingError, WorkDirError
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

log = logging.getLogger(__name__)

PACKAGE = Path(airflow_provider_mssql_cdc.__file__).parent
JOB = PACKAGE / "spark" / "job.py"

COPIES_KEPT = datetime.timedelta(days=90)
"""How long a copy stays which no run goes on with; a paused one ends by ``copy_keep``."""

_SPEC = "spec.json"
_ID = re.compile("[0-9a-f]{12}")
_WRITTEN = re.compile(r"code\.zip|\.?(receipt|windows)\.json.*|staged")


def is_local(path: str) -> bool:
    """Whether a path names a file of this machine rather than an object store."""
    return "://" not in path or path.startswith("file://")


def open_path(path: str) -> Path | ObjectStoragePath:
    """A local path, or Airflow's object storage path for a URL."""
    if is_local(path):
        return Path(path.removeprefix("file://"))
    from airflow.sdk import ObjectStoragePath

    return ObjectStoragePath(path)


def write_spec(spec: JobSpec) -> None:
    """Write the spec, and the code that the job needs, into the spec's own folder; all of it or nothing.

    :raises WorkDirError: if it cannot be written there
    """
    path = open_path(spec.path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(spec))
        open_path(code_path(spec)).write_bytes(_code())
    except OSError as error:
        remove(spec)
        raise WorkDirError(
            f"the job spec cannot be written to work_dir {spec.work_dir}: {error.strerror or error}.",
            advice="Make room there, or give Airflow the right to write there, or name another work_dir that Airflow "
            "and Spark both read.",
        ) from error
    except BaseException:
        remove(spec)
        raise


def read_spec(path: str) -> JobSpec:
    """Read a spec back.

    :raises FormatError: if it is damaged, or of a later version
    """
    return from_json(JobSpec, open_path(path).read_text())


def code_path(spec: JobSpec) -> str:
    """Where the zip with the job's code is written, for ``py_files``."""
    return spec.path.removesuffix(_SPEC) + "code.zip"


def read_receipt(spec: JobSpec) -> Receipt:
    """Read the job's receipt.

    :raises ReceiptMissingError: if there is none, or it cannot be read, or it answers another spec
    :raises NewerFormatError: if a later version of this package wrote it: what it says counts, and this one cannot
        read it
    """
    path = _written(spec.receipt_path)
    if path is None:
        raise ReceiptMissingError(
            f"the Spark application ended without a receipt ({spec.receipt_path}); what it did is not known.",
            advice="The run can be repeated: the job looks into the target before it loads. The Spark log above "
            "says why it ended.",
        )
    try:
        receipt = from_json(Receipt, path.read_text())
    except NewerFormatError:
        raise
    except FormatError as error:
        raise ReceiptMissingError(
            f"the receipt {spec.receipt_path} cannot be read: {error}",
            advice="The run can be repeated: the job looks into the target before it loads.",
        ) from error
    if receipt.spec_id != spec.id:
        raise ReceiptMissingError(f"the receipt {spec.receipt_path} answers spec {receipt.spec_id}, not {spec.id}.")
    return receipt


def read_windows(spec: JobSpec) -> Receipt | None:
    """What a job has loaded that goes on with copies; None where it has not said so.

    :raises FormatError: if it cannot be read
    """
    path = _written(spec.windows_path)
    return None if path is None else from_json(Receipt, path.read_text())


def _written(text: str) -> Path | ObjectStoragePath | None:
    """What the job has written as one text."""
    path = open_path(text)
    if not path.exists():
        return None
    if path.is_file():
        return path
    # at a URL Spark writes a folder, which counts once its success file lies beside the part
    if not (path / "_SUCCESS").exists():
        return None
    return next((part for part in path.iterdir() if part.name.startswith("part-")), None)


def remove(spec: JobSpec) -> None:
    """Remove spec, code, receipt and staged rows."""
    _remove_folder(open_path(spec.path).parent)


def remove_old(work_dir: str, age: float = 86400.0) -> None:
    """Remove the folders of jobs whose worker was killed before it could.

    A folder is as old as the newest file or folder in it, since a job that copies or stages for long writes there all
    the time. Where a store does not tell when something was written, nothing is removed.

    :param age: seconds without a change after which no job can still need its folder
    """
    root = open_path(work_dir)
    try:
        folders: list[Path | ObjectStoragePath] = [*root.iterdir()] if root.exists() else []
    except OSError as error:
        # what is wrong with the folder the spec meets, too, and says so
        log.warning("%s cannot be listed, so no old folder of a job is removed: %s", work_dir, error)
        return
    for folder in folders:
        if _is_old(folder, time.time() - age):
            _remove_folder(folder)


def remove_old_copies(work_dir: str, age: float = COPIES_KEPT.total_seconds()) -> None:
    """Remove the copies that no run has gone on with.

    :param age: seconds without a change after which one goes
    """
    root = open_path(f"{work_dir.rstrip('/')}/copies")
    try:
        folders = [copy for table in (root.iterdir() if root.exists() else ()) for copy in table.iterdir()]
    except OSError as error:
        log.warning("%s cannot be listed, so no old copy is removed: %s", root, error)
        return
    for folder in folders:
        try:
            newest = max((path.stat().st_mtime for path in folder.rglob("*")), default=0.0)
        except OSError:
            # a run is at work in it
            continue
        if 0 < newest < time.time() - age:
            log.warning("copy %s is removed: no run has gone on with it for %.0f days", folder, age / 86400)
            _remove(folder)


def remove_copy(place: str, id_: str) -> None:
    """Remove the folder of a copy, if this machine has it.

    :param place: where the copies of its table lie
    """
    folder = open_path(f"{place.rstrip('/')}/{id_}")
    try:
        if folder.exists():
            _remove(folder)
    except OSError as error:
        log.warning("copy %s stays in %s: %s", id_, place, error)


def _is_old(folder: Path | ObjectStoragePath, limit: float) -> bool:
    spec = folder / _SPEC
    newest = 0.0
    try:
        # the spec first: of most jobs it is young, which saves looking further
        first = folder if _has_lost_its_spec(folder) else spec
        for path in itertools.chain([first], folder.rglob("*")):
            newest = max(newest, path.stat().st_mtime)
            if newest > limit:
                return False
    except OSError:
        # no job's folder, one that others keep for themselves, or one whose job is at work
        return False
    return newest > 0


def _has_lost_its_spec(folder: Path | ObjectStoragePath) -> bool:
    """Whether a folder is what a removal that was killed has left, or a job that went on after its folder was removed.

    :raises OSError: if it cannot be read
    """
    if not _ID.fullmatch(folder.name) or (folder / _SPEC).exists():
        return False
    return all(_WRITTEN.fullmatch(path.name) for path in folder.iterdir())


def _remove_folder(folder: Path | ObjectStoragePath) -> None:
    # two tries of a task may remove the folder of the job that both have waited for
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            # by its spec a folder is known as a job's: should this be killed, remove_old finds the rest
            if path.name != _SPEC:
                _remove(path)
        _remove(folder)


def _remove(path: Path | ObjectStoragePath) -> None:
    if not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
    elif isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.rmdir(recursive=True)


def _code() -> bytes:
    """A zip of the parts of this package that run in Spark."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in (PACKAGE / "core", PACKAGE / "spark"):
            for path in sorted(folder.rglob("*.py")):
                archive.write(path, path.relative_to(PACKAGE.parent))
        archive.write(PACKAGE / "__init__.py", f"{PACKAGE.name}/__init__.py")
    return buffer.getvalue()
