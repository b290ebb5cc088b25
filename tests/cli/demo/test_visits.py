"""The visitors of the big table: what they note is what SQL Server captures."""

from __future__ import annotations

import pymssql

from airflow_provider_mssql_cdc.cli.demo import visits
from airflow_provider_mssql_cdc.cli.demo.compare import read_source
from airflow_provider_mssql_cdc.cli.demo.visits import EVENTS, VISITS, Visitors, first_row
from airflow_provider_mssql_cdc.sandbox import Sandbox


def test_what_visitors_note_is_what_is_captured():
    rows = 20
    # the capture is asked for, and reads all that was committed
    with Sandbox(database="shop", agent_running=False) as server:

        def connect():
            given = {"server": server.host, "port": str(server.port), "user": server.user, "password": server.password}
            return pymssql.connect(**given, database="shop")

        visits.build(server, "shop", rows)
        visitors = Visitors(connect, rows)
        with connect() as connection:
            assert read_source(connection, VISITS.full_name, VISITS.arrow) == [
                first_row(number) for number in range(1, rows + 1)
            ]
        visitors.change(40, noted=True)
        visitors.change(5, noted=False)
        marked = visitors.mark()
        server.step()
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(VISITS.arrow.names)}, SUBSTRING('DIBU', [__$operation], 1) FROM cdc.web_visits_CT"
                " ORDER BY [__$start_lsn], [__$command_id], [__$operation]"
            )
            captured = cursor.fetchall()
            source = {row[0]: row for row in read_source(connection, VISITS.full_name, VISITS.arrow)}
    assert captured[-1][:2] == (marked, visits.MARK)
    by_key = {}
    for *row, operation in captured:
        by_key.setdefault(row[0], []).append((operation, tuple(row)))
    noted = visitors.noted()
    assert len(noted) == sum(map(len, visitors.events.values()))
    assert {len(row) for row in noted} == {len(EVENTS)}
    for key, events in visitors.events.items():
        # those that were not noted came behind them
        assert by_key[key][: len(events)] == events
    assert {operation for events in visitors.events.values() for operation, _ in events} == {*"DIBU"}
    assert visitors.commits == 46
    for key, row in visitors._changed.items():
        assert source.get(key) == row
