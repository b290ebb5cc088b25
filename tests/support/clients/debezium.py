"""Debezium's SQL Server connector, unmodified, in a JVM of its own: its embedded engine, driven through Py4J."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway, launch_gateway

from airflow_provider_mssql_cdc.sandbox import Sandbox

VERSION = "3.6.1.Final"
_JARS = Path(pyspark.__file__).parent / "jars"


class Event(NamedTuple):
    """A change as Debezium tells it.

    :param op: ``r`` read by the snapshot, ``c`` insert, ``u`` update, ``d`` delete
    :param lsn: commit LSN in the colon form; None in a snapshot
    """

    table: str
    op: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    lsn: str | None


def class_path(folder: Path) -> str:
    """Fetch the connector and all that it needs from Maven Central by Ivy, or find it in Ivy's cache."""
    (ivy,) = _JARS.glob("ivy-*.jar")
    found = folder / "class_path"
    for module in ("debezium-connector-sqlserver", "debezium-embedded"):
        part = folder / module
        command = ["java", "-jar", str(ivy), "-dependency", "io.debezium", module, VERSION, "-confs", "default"]
        # a network may fail for a moment
        for _ in range(3):
            done = subprocess.run(
                [*command, "-types", "jar", "bundle", "-cachepath", str(part)], capture_output=True, text=True
            )
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stdout[-3000:]
        with found.open("a") as all_parts:
            all_parts.write(part.read_text().strip() + os.pathsep)
    return found.read_text()


class Debezium:
    """One connector with its offsets and schema history.

    :param jvm: a Py4J gateway whose JVM has the connector
    :param folder: for offsets and schema history, which a later connector with the same folder goes on from
    :param properties: of the connector, beside or instead of those for this server
    """

    def __init__(self, jvm: JavaGateway, server: Sandbox, folder: Path, **properties: str) -> None:
        self._jvm = jvm
        self.records: list[tuple[str, str | None]] = []
        self.ended: list[str] = []
        given = {
            "name": "conformance",
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "topic.prefix": "t",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(folder / "offsets"),
            "offset.flush.interval.ms": "0",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(folder / "schema_history"),
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.names": str(server.database),
            "database.encrypt": "true",
            "database.trustServerCertificate": "true",
            "poll.interval.ms": "50",
            "converter.schemas.enable": "false",
            "decimal.handling.mode": "string",
            "time.precision.mode": "isostring",
            "tombstones.on.delete": "false",
            "errors.max.retries": "0",
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
        settings = jvm.jvm.java.util.Properties()
        for name, value in given.items():
            settings.setProperty(name, value)
        json_format = jvm.jvm.java.lang.Class.forName("io.debezium.engine.format.Json")
        builder = jvm.jvm.io.debezium.engine.DebeziumEngine.create(json_format).using(settings)
        self._callbacks = (_Records(self), _Ended(self))
        self._engine = builder.using(self._callbacks[1]).notifying(self._callbacks[0]).build()
        self._changed = threading.Condition()

    def __enter__(self) -> Debezium:
        self._thread = threading.Thread(target=self._engine.run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.ended:
            self._engine.close()
        self._thread.join(30)

    def events(self) -> list[Event]:
        """What it has sent so far, table by table in its order."""
        found = []
        for topic, value in list(self.records):
            payload = json.loads(value) if value else {}
            if "op" in payload:
                lsn = payload["source"].get("commit_lsn")
                table = ".".join(topic.split(".")[-2:])
                found.append(Event(table, payload["op"], payload["before"], payload["after"], lsn))
        return found

    def wait_for(self, condition: Callable[[list[Event]], bool], seconds: float = 60) -> list[Event]:
        """The events as soon as they fulfil the condition; fail if the connector ends, or when time is up."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.ended or condition(self.events()), seconds)
        assert not self.ended, self.ended
        assert done, f"after {seconds} s: {self.events()}"
        return self.events()

    def wait_for_end(self, seconds: float = 60) -> str:
        """What the connector says when it ends; fail if it does not, before time is up."""
        with self._changed:
            done = self._changed.wait_for(lambda: bool(self.ended), seconds)
        assert done, f"after {seconds} s: {self.events()}"
        return self.ended[0]

    def note(self, notes: list[Any], value: Any) -> None:
        """Take what a callback brings."""
        with self._changed:
            notes.append(value)
            self._changed.notify_all()


class _Records:
    def __init__(self, connector: Debezium) -> None:
        self._connector = connector

    def accept(self, record: Any) -> None:
        self._connector.note(self._connector.records, (record.destination(), record.value()))

    class Java:
        implements = ("java.util.function.Consumer",)


class _Ended:
    def __init__(self, connector: Debezium) -> None:
        self._connector = connector

    def handle(self, success: bool, message: str, error: Any) -> None:
        causes = []
        while error is not None:
            causes.append(error.toString())
            error = error.getCause()
        self._connector.note(self._connector.ended, "\n".join([message, *causes]))

    class Java:
        implements = ("io.debezium.engine.DebeziumEngine$CompletionCallback",)


@contextlib.contextmanager
def gateway() -> Iterator[JavaGateway]:
    """A JVM with the connector on its class path."""
    (py4j,) = _JARS.glob("py4j-*.jar")
    with tempfile.TemporaryDirectory() as folder:
        port, process = launch_gateway(
            jarpath=str(py4j),
            classpath=class_path(Path(folder)),
            javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"],
            die_on_exit=True,
            return_proc=True,
        )
        jvm = JavaGateway(
            gateway_parameters=GatewayParameters(port=port),
            callback_server_parameters=CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True),
        )
        callbacks = jvm.get_callback_server().get_listening_port()
        jvm.java_gateway_server.resetCallbackClient(jvm.java_gateway_server.getCallbackClient().getAddress(), callbacks)
        try:
            yield jvm
        finally:
            jvm.shutdown()
            process.kill()
            process.wait()
