"""A database of the sandbox with CDC, job specs for its tables, and what its tables hold, by plain SELECTs."""

from __future__ import annotations

import uuid

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.targets.parquet import read_history
from tests.support.spark.postgres import Postgres


class Origin:
    """One database, whose capture runs when ``scan`` is called, or by itself where ``live``.

    ``format`` is that of its targets, ``catalog`` the one that names them; without it Delta's lie in a folder.
    """

    format = "iceberg"
    catalog: str | None = None
    warehouse: Postgres | None = None

    def __init__(self, spark, sandbox, work_dir, namespace, live=False) -> None:
        self.spark, self.sandbox, self.work_dir, self.namespace = spark, sandbox, work_dir, namespace
        self.database = f"d{uuid.uuid4().hex[:12]}"
        sandbox.create_database(self.database)
        self.sql("EXEC sys.sp_cdc_enable_db")
        self.live = live

    def into(self, warehouse: Postgres) -> None:
        """Load into tables of this server, in a schema that does not exist yet."""
        self.format, self.warehouse = "postgresql", warehouse

    def sql(self, text: str) -> list[dict]:
        """Run a batch as administrator; the rows of its last result set."""
        tables = self.sandbox.execute(text, self.database)
        return tables[-1].to_pylist() if tables else []

    def close(self) -> None:
        """Drop the database: while it is there, its capture job scans, and snapshots look at it."""
        self.sandbox.execute(
            f"ALTER DATABASE {self.database} SET SINGLE_USER WITH ROLLBACK IMMEDIATE DROP DATABASE {self.database}",
            "master",
        )

    def enable(self, name: str, **options) -> None:
        schema, table = name.split(".")
        given = "".join(f", @{key} = {value}" for key, value in {"supports_net_changes": 0, **options}.items())
        self.sql(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'{schema}', @source_name = N'{table}',"
            f" @role_name = NULL{given}"
        )
        if not self.live:
            self.sql("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")

    def scan(self) -> Lsn:
        """Capture what is committed; the new cut."""
        self._step()
        return self.max_lsn()

    def _step(self) -> None:
        """One scan; where nothing is mapped then, one that finds nothing for so long that it maps an LSN."""
        cdc = self.sandbox.cdc(self.database)
        self.sandbox.capture.step(cdc)
        if cdc.max_lsn() is None:
            self.sandbox.capture.step(cdc, dummy=True)

    def wait_captured(self) -> None:
        """Let one scan pass after what was committed: scans are serial, so this one has seen it."""
        self._step()

    @property
    def recovery_fork(self) -> str:
        """What a restore changes."""
        (row,) = self.sql(
            "SELECT UPPER(CONVERT(varchar(36), recovery_fork_guid)) AS fork FROM sys.database_recovery_status"
            " WHERE database_id = DB_ID()"
        )
        return row["fork"]

    def fork(self, guid: str | None = None) -> None:
        """Begin another recovery fork, as a restore does, or go back to one."""
        chosen = guid or str(uuid.uuid4()).upper()
        self.sandbox.instance.storage.database(self.database).recovery_fork_guid = chosen

    def max_lsn(self) -> Lsn:
        return Lsn(self.sql("SELECT sys.fn_cdc_get_max_lsn() AS lsn")[0]["lsn"])

    def witness(self, position: Lsn) -> Witness | None:
        """The witness of a position, as a plan finds it."""
        rows = self.sql(
            "SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping"
            f" WHERE start_lsn = (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE start_lsn <= {position})"
        )
        return Witness(Lsn(rows[0]["start_lsn"]), rows[0]["tran_end_time"], self.recovery_fork) if rows else None

    def instance(self, name: str, capture_instance: str | None = None) -> CaptureInstance:
        schema, table = name.split(".")
        chosen = capture_instance or f"{schema}_{table}"
        row = self.sql(
            "SELECT object_id, source_object_id, start_lsn, create_date,"
            f" sys.fn_cdc_get_min_lsn(N'{chosen}') AS min_lsn FROM cdc.change_tables"
            f" WHERE capture_instance = N'{chosen}'"
        )[0]
        columns = self.sql(
            "SELECT c.column_ordinal, c.column_id, c.column_name, TYPE_NAME(t.system_type_id) AS type_name,"
            " t.max_length, t.precision, t.scale, s.is_nullable, t.collation_name, c.is_computed"
            " FROM cdc.captured_columns c JOIN sys.columns t ON t.object_id = c.object_id AND t.name = c.column_name"
            f" JOIN sys.columns s ON s.object_id = {row['source_object_id']} AND s.column_id = c.column_id"
            f" WHERE c.object_id = {row['object_id']}"
        )
        key = self.sql(f"SELECT column_name, index_ordinal FROM cdc.index_columns WHERE object_id = {row['object_id']}")
        return CaptureInstance(
            name=chosen,
            object_id=row["object_id"],
            source=TableName(schema, table),
            source_object_id=row["source_object_id"],
            create_date=row["create_date"],
            start_lsn=Lsn(row["start_lsn"]),
            min_lsn=Lsn(row["min_lsn"]),
            columns=tuple(
                Column(
                    c["column_ordinal"],
                    c["column_id"],
                    c["column_name"],
                    c["type_name"],
                    c["max_length"],
                    c["precision"],
                    c["scale"],
                    bool(c["is_nullable"]),
                    c["collation_name"],
                    computed=bool(c["is_computed"]),
                )
                for c in sorted(columns, key=lambda c: c["column_ordinal"])
            ),
            index_key=tuple(k["column_name"] for k in sorted(key, key=lambda k: k["index_ordinal"])),
        )

    @property
    def place(self) -> str:
        """Where the targets lie, as a DAG author writes it."""
        catalogs = {"iceberg": f"://lake/{self.namespace}", "postgresql": f"://warehouse/{self.namespace}"}
        return self.format + catalogs.get(self.format, f"+file://{self.work_dir}")

    def target(self, name: str, shape: str) -> tuple[str, ...]:
        suffix = "" if shape == "mirror" else f"_{shape}"
        catalog = {"iceberg": self.catalog or "lake", "postgresql": "warehouse"}.get(self.format, self.catalog)
        place = (catalog, self.namespace) if catalog else (f"file://{self.work_dir}",)
        return (*place, name.replace(".", "_") + suffix)

    def sql_name(self, name: str, shape: str, suffix: str = "") -> str:
        """A target table in Spark SQL."""
        *place, table = self.target(name, shape)
        return self._sql_name(place, table + suffix)

    def _sql_name(self, place: list[str], table: str) -> str:
        if self.format == "delta" and self.catalog is None:
            return f"delta.`{place[0]}/{table}`"
        return ".".join(f"`{part}`" for part in (*place, table))

    def table(
        self, name: str, shapes=("mirror", "history"), at=None, key=None, capture_instance=None, **sink
    ) -> TableSpec:
        """A table's part of a spec.

        :param at: shape to (read_through, expects); a shape without it is loaded for the first time
        """
        instance = self.instance(name, capture_instance)
        at = at or {}
        return TableSpec(
            instance.source,
            instance,
            TableSchema(instance.columns, tuple(key or instance.index_key)),
            tuple(
                SinkSpec(s, self.target(name, s), *at.get(s, (None, None)), format=self.format, **sink) for s in shapes
            ),
            unique_key=key is None,
            copies=name.replace(".", "_"),
        )

    def spec(self, *tables: TableSpec, upto: Lsn, **options) -> JobSpec:
        source = SourceSpec(
            server=f"{self.sandbox.host}:{self.sandbox.port}",
            database=self.database,
            jdbc_url=f"jdbc:sqlserver://;serverName={self.sandbox.host};port={self.sandbox.port};"
            f"databaseName={self.database}",
            options={"encrypt": "true", "trustServerCertificate": "true"},
            timezone="UTC",
        )
        database = self.warehouse.spec if self.warehouse else None
        chosen = {
            "database": database,
            "connections": 2,
            "tables_at_once": 2,
            "slice_rows": 50,
            "copy_rows": 1000,
            "copy_chunk_seconds": None,
            "capture_timeout": 60.0,
            "recovery_fork": self.recovery_fork,
            **options,
        }
        if "witness" not in chosen:
            chosen["witness"] = self.witness(upto)
        spec = JobSpec(uuid.uuid4().hex[:12], source, tables, Cut.at(upto), str(self.work_dir), **chosen)
        return from_json(JobSpec, to_json(spec))

    def load(self, *tables: TableSpec, upto: Lsn | None = None, **options):
        """Run a job in this process; its receipt, as the operator reads it."""
        return run(self.spark, self.spec(*tables, upto=upto or self.max_lsn(), **options))

    def lake(self, name: str, shape: str = "mirror", suffix: str = ""):
        """The rows of a source table's target."""
        return self.rows(self.target(name, shape)[-1] + suffix)

    def rows(self, table: str):
        """The rows of a target table, by its own name."""
        if self.warehouse is not None:
            return self.warehouse.rows(self.namespace, table)
        session = self.spark.newSession()
        *place, _ = self.target("", "mirror")
        if self.format == "parquet":
            frame = read_history(session, place[0], table)
        else:
            frame = session.table(self._sql_name(place, table))
        return [row.asDict() for row in frame.collect()]


def positions(receipt) -> dict:
    """What a checkpoint would hold after this receipt, as ``Origin.table(at=..)`` takes it: for one table."""
    (table,) = receipt.tables
    return {s.shape: (s.read_through, s.after.position) for s in table.sinks}
