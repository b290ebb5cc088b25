"""``mssql-cdc warm``: rehearse loads, and make of the Java classes that they load an archive for this worker."""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.cli.demo import shop
from airflow_provider_mssql_cdc.cli.demo.prerequisites import check_java
from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.sandbox import open_sandbox
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.core.spec import JobSpec
    from airflow_provider_mssql_cdc.sandbox import Sandbox

_BINARY = "spark-submit"
_DATABASE, _TABLE, _ROWS = "shop", "catalog.products", 1000
_CHANGES = (
    "UPDATE catalog.products SET price = price + 1 WHERE product_id % 2 = 0",
    "DELETE FROM catalog.products WHERE product_id % 7 = 0",
)


def run(arguments: argparse.Namespace) -> int:
    """Make the archive, unless there is one that fits.

    :raises CommandError: if it cannot be made
    """
    check_java()
    from airflow_provider_mssql_cdc.operators import class_archive, jars

    started = time.monotonic()
    # as with Ctrl-C, what was started ends, and what was written goes
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        driver = class_archive.driver(_BINARY, os.environ)
        place = class_archive.place(_BINARY, os.environ)
        if place is None:
            raise CommandError(f"{driver.java} does not say of which build it is: there is no file release beside it")
        jars.make_folder()
        with jars.locked(place.with_suffix(".lock"), "makes the archive of classes"):
            archive = class_archive.found(_BINARY, os.environ)
            if archive is not None and driver.fits(archive):
                print(f"{archive} is there, and fits.")
                return EXIT_OK
            print("Rehearsing a first load and a window of changes, each by a Spark of its own ...", flush=True)
            with tempfile.TemporaryDirectory(prefix="mssql-cdc-warm-") as folder:
                classes = _rehearse(Path(folder))
            print(f"Making an archive of {len(classes):,} classes ...", flush=True)
            archive = class_archive.make(driver, classes, place)
    except (MsSqlCdcError, OSError) as error:
        raise CommandError(" ".join(str(error).split())) from error
    finally:
        signal.signal(signal.SIGTERM, before)
    size = archive.stat().st_size / 2**20
    print(f"{archive}: {size:.0f} MiB. Loads of this user on this worker use it. ({time.monotonic() - started:.0f} s)")
    return EXIT_OK


def _rehearse(folder: Path) -> list[str]:
    """Load a table for the first time, and a window of its changes; the classes that Java has loaded for it."""
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
    from airflow_provider_mssql_cdc.core.shapes import HISTORY, MIRROR
    from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
    from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
    from airflow_provider_mssql_cdc.core.target import Target
    from airflow_provider_mssql_cdc.hooks.jdbc import jdbc_url
    from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
    from airflow_provider_mssql_cdc.operators import job_files
    from airflow_provider_mssql_cdc.operators.outcome import Outcome
    from airflow_provider_mssql_cdc.operators.planning import plan_load
    from airflow_provider_mssql_cdc.operators.request import Request

    found: dict[str, None] = {}
    with open_sandbox(host="127.0.0.1", port=0, database=_DATABASE, capture_interval=0.2) as server:
        shop.build(server, _DATABASE, _ROWS)
        connection = Connection(
            conn_id="warm",
            conn_type="mssql",
            host=server.host,
            port=server.port,
            login=server.user,
            password=server.password,
            schema=_DATABASE,
            extra='{"trustServerCertificate": "true"}',
        )
        url, options = jdbc_url(connection)
        store = CheckpointStore(_Variables())
        defaults = TableOptions(Target.parse("iceberg://lake/shop"), (MIRROR, HISTORY))
        request = Request("warm", read_entries([_TABLE], salted=False), (), defaults)
        for number in range(2):
            with MsSqlCdcHook(connection=connection) as hook:
                plan = plan_load(hook, store, request, None)
            if plan.failures or plan.upto is None:
                raise CommandError(f"the rehearsal has nothing to load: {plan.failures}")
            source = SourceSpec(f"{server.host}:{server.port}", _DATABASE, url, options)
            spec = JobSpec(uuid.uuid4().hex[:12], source, tuple(plan.specs), plan.upto, str(folder / "work"))
            job_files.write_spec(spec)
            found |= dict.fromkeys(_submit(spec, server, folder / f"spark{number}"))
            receipt = job_files.read_receipt(spec)
            if errors := [str(table.error) for table in receipt.tables if table.error]:
                raise CommandError(f"the rehearsal failed: {errors[0]}")
            for checkpoint in Outcome(plan, spec, receipt).checkpoints(datetime.datetime.now(datetime.UTC)):
                store.save(checkpoint)
            for change in _CHANGES:
                server.execute(change, _DATABASE)
            server.step(_DATABASE)
    return list(found)


class _Variables(dict[str, Any]):
    """Airflow's Variable as far as the store of checkpoints uses it, without Airflow's database."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return super().get(key, default)

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        """Keep a value."""
        self[key] = value

    def delete(self, key: str) -> None:
        """Forget a key."""
        self.pop(key, None)


def _submit(spec: JobSpec, server: Sandbox, folder: Path) -> list[str]:
    """Run a job; the lines of Java's list of the classes that it has loaded."""
    from airflow_provider_mssql_cdc.core import formats
    from airflow_provider_mssql_cdc.operators import class_archive, jars, job_files

    folder.mkdir(mode=0o700)
    needs, classes, log = formats.FORMATS[formats.ICEBERG], folder / "classes", folder / "log"
    settings = {
        **needs.conf,
        **jars.spark_settings([*needs.packages, formats.JDBC_DRIVER]),
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": " ".join(
            (class_archive.QUICK_START, class_archive.in_setting(f"-XX:DumpLoadedClassList={classes}"))
        ),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder.parent / "lake"),
        "spark.local.dir": str(folder),
        "spark.mssql_cdc.user": server.user,
        "spark.mssql_cdc.password": server.password,
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
    }
    properties = folder / "properties"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    inherited = {name: value for name, value in os.environ.items() if name not in class_archive.JAVA_VARIABLES}
    with Children() as children:
        process = children.start(
            [
                *(_BINARY, "--properties-file", str(properties), "--py-files", job_files.code_path(spec)),
                *(str(job_files.JOB), "--spec", spec.path),
            ],
            env={**inherited, "SPARK_LOCAL_IP": "127.0.0.1"},
            log=log,
            cwd=folder,
        )
        process.wait()
    if process.returncode or not classes.is_file():
        said = log.read_text(errors="replace").strip().splitlines()
        raise CommandError(f"spark-submit ended with {process.returncode}: {(said or ['it said nothing'])[-1]}")
    return classes.read_text(encoding="utf-8").splitlines()
