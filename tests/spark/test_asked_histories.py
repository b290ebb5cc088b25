"""Random histories with copies that are asked for, paused, stopped and killed; targets whole and spoiled."""

from __future__ import annotations

import dataclasses
import json
import os
import random

import pytest

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP
from airflow_provider_mssql_cdc.spark.session import table_session
from tests.support import harsh, histories
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.kill_points import POINTS, READ, STAGED
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Stop

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

ROUNDS = int(os.environ.get("MSSQL_CDC_TEST_ROUNDS", "8"))
SEEDS = [harsh.SEED + n for n in range(int(os.environ.get("MSSQL_CDC_TEST_BATCHES", "1")))]
COUNT = 6
STOPS = [READ, STAGED, *(POINTS["iceberg"][label] for label in ("branch made", "one shape committed", "no receipt"))]


class Asking:
    """What people ask of copies, drawn.

    :param loads: of the tables
    """

    def __init__(self, loads: Loads, rng: random.Random) -> None:
        self._loads, self._rng = loads, rng
        self._requests = CopyRequests(loads.variables)
        self._spoiled: set[str] = set()
        self._asked = 0

    def stands(self, table: str) -> CopyRequest | None:
        """The request that has not ended."""
        identity = self._loads.identity(table)
        request = self._requests.load(identity)
        return None if request is None or request.has_ended(self._loads.store.load(identity)) else request

    def ask(self, table: str, wanted: str) -> None:
        """Ask for a copy, or something else of the one that stands; what is to be stopped stays so."""
        request, identity = self.stands(table), self._loads.identity(table)
        if request is None and wanted == COPY:
            self._asked += 1
            request = CopyRequest(identity, f"asked-{self._asked}")
            if self._rng.random() < 0.5:
                spoiled = self._spoil(table)
                # the rows that are spoiled fulfil it, here and there
                where = json.dumps([["h", "in", spoiled]]) if self._rng.random() < 0.5 else ""
                request = dataclasses.replace(request, where=where)
        elif request is None or request.wanted == STOP or not self._may(wanted, table):
            return
        print(f"{table}: {request.id} is asked to {wanted} {request.where}")
        self._requests.save(dataclasses.replace(request, wanted=wanted))

    def _may(self, wanted: str, table: str) -> bool:
        """Whether nothing is to be mended, and of a stop, whether no shape waits for the copy: it would fail."""
        if wanted == COPY:
            return True
        stored = self._loads.store.load(self._loads.identity(table))
        return not self._is_spoiled(table) and (wanted == PAUSE or set(self._loads.shapes) <= stored.loaded.keys())

    @property
    def limits(self) -> list[int | None]:
        """How many transactions a run may be limited to: it takes no copy, and fails where only a copy mends."""
        return [None] if any(map(self._is_spoiled, self._loads.tables)) else [None, None, None, 20]

    def _is_spoiled(self, table: str) -> bool:
        return table in self._spoiled and self.stands(table) is not None

    def goes_on(self) -> bool:
        """Whether some copy has not ended; none is paused any more."""
        standing = {table: request for table in self._loads.tables if (request := self.stands(table)) is not None}
        for table, request in standing.items():
            if request.is_paused:
                self.ask(table, COPY)
        return bool(standing)

    def _spoil(self, table: str) -> list[int]:
        """Rows of the mirror are lost, wrong, or none of the source's; the histories that these are of."""
        name = ".".join(self._loads.origin.target(f"lab.{table}", "mirror"))
        session, number = table_session(self._loads.origin.spark), self._rng.randrange(3)
        column = histories.COLUMNS[table][histories.KEY_LENGTH[table]]
        other = {"items": "'spoiled'", "parts": "timestamp_ntz '2000-01-01 00:00:00'", "flags": "NOT on_off"}[table]
        print(f"{table}: the mirror is spoiled ({number})")
        session.sql(f"DELETE FROM {name} WHERE h % 3 = {number} AND h % 2 = 0")
        session.sql(f"UPDATE {name} SET {column} = {other} WHERE h % 3 = {number}")
        columns = ", ".join(histories.COLUMNS[table])
        ghost = {"items": "h, id + 1000", "parts": "h, code, part + 1000", "flags": "h, id + 1000"}[table]
        rest = ", ".join(histories.COLUMNS[table][histories.KEY_LENGTH[table] :])
        session.sql(f"INSERT INTO {name} ({columns}) SELECT {ghost}, {rest} FROM {name} WHERE h % 5 = {number}")
        self._spoiled.add(table)
        return [h for h in range(COUNT) if number in (h % 3, h % 5)]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", SEEDS)
def test_copies_that_are_asked_for_at_any_time(spark, tmp_path, namespace, seed, monkeypatch):
    print(f"MSSQL_CDC_TEST_SEED={seed} MSSQL_CDC_TEST_ROUNDS={ROUNDS}")
    rng = random.Random(seed)
    with harsh.harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD, seed=seed) as server:
        live = Origin(spark, server, tmp_path, namespace, live=True)
        models = [histories.Model(h) for h in range(COUNT)]
        prepare(live)
        write(live, models, rng, 80)
        live.wait_captured()
        loads = Loads(live, ("mirror", "history"))
        loads.load()
        asking = Asking(loads, rng)
        for number in range(ROUNDS):
            write(live, models, rng, rng.randrange(40))
            live.wait_captured()
            for table in loads.tables:
                asking.ask(table, rng.choice([COPY, COPY, COPY, PAUSE, STOP]))
            if number == ROUNDS // 2:
                # it joins whatever copy is under way
                loads.shape("mirror", "history", "scd2")
            loads.options = {"copy_rows": rng.choice([7, 25, 1000]), "copy_seconds": rng.choice([0.001, 0.001, None])}
            limit = rng.choice(asking.limits)
            print(f"round {number}: {loads.options}, limit {limit}")
            if rng.random() < 0.3:
                point = rng.choice(STOPS)
                print(f"stops at {point}")
                with monkeypatch.context() as patched:
                    stop = Stop(patched, point)
                    try:
                        with stop.meanwhile(loads.load, may_fail=True):
                            loads.load(limit)
                    except AssertionError:
                        if stop._reached:
                            raise
            else:
                loads.load(limit)
        while asking.goes_on():
            loads.load()
        while loads.load()[1] is not None:
            pass
        check(loads, models)
