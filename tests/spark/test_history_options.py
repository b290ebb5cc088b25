"""Histories of each kind beside each other, compared with the change table and the functions of the source."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, SinkSpec
from tests.support.spark.kill_points import ABOUT_TO_COMMIT
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Stop

pytestmark = pytest.mark.xdist_group(__name__)

COLUMNS = ("id", "note", "doc", "old")
DATA = ("id", "note", "doc")
KINDS = {
    "all": HistoryOptions("all"),
    "net_mask": HistoryOptions("net_mask"),
    "net_merge": HistoryOptions("net_merge"),
    "no_updates": HistoryOptions(operations=("insert", "delete")),
    "wide": HistoryOptions(form="wide"),
}
FUNCTIONS = {
    "all": ("all", "all"),
    "net_mask": ("net", "all with mask"),
    "net_merge": ("net", "all with merge"),
}
OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U", 5: "M"}


class Histories:
    """One source table with a history of each kind."""

    def __init__(self, origin: Origin, kinds: tuple[str, ...]) -> None:
        self.origin, self.kinds = origin, kinds
        self.at: dict[str, tuple[Lsn, Lsn]] = {}

    def table(self, **replaced):
        """The part of a spec, with all its sinks where they are now."""
        (sink,) = self.origin.table("dbo.orders", ("history",)).sinks
        table = self.origin.table("dbo.orders", ())
        return dataclasses.replace(table, sinks=tuple(self.sink(sink, kind, **replaced) for kind in self.kinds))

    def sink(self, sink: SinkSpec, kind: str, **replaced) -> SinkSpec:
        read_through, expects = self.at.get(kind, (None, None))
        return dataclasses.replace(
            sink,
            shape="transactions" if kind == "transactions" else "history",
            table=(*sink.table[:-1], f"orders_{kind}"),
            read_through=read_through,
            expects=expects,
            **{"history": KINDS.get(kind, DEFAULT), **replaced},
        )

    def tables(self):
        """A part of a spec for each sink: a table is loaded as one history by one task."""
        whole = self.table()
        return [dataclasses.replace(whole, sinks=(sink,)) for sink in whole.sinks]

    def load(self, **options):
        """Load one after the other, and remember the positions; the receipt of each."""
        receipts = self.origin.load(*self.tables(), tables_at_once=1, **options).tables
        assert [receipt.error for receipt in receipts] == [None] * len(receipts)
        found = {kind: receipt.sinks[0] for kind, receipt in zip(self.kinds, receipts, strict=True)}
        self.at = {kind: (sink.read_through, sink.after.position) for kind, sink in found.items()}
        return found

    def rows(self, kind: str) -> list[dict]:
        return self.origin.rows(f"orders_{kind}")

    def name(self, kind: str) -> str:
        return self.origin.sql_name("dbo.orders", "history").replace("dbo_orders_history", f"orders_{kind}")


@pytest.fixture
def orders(live: Origin) -> Origin:
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max), old ntext)")
    live.sql(
        "INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}', N'old {n}')" for n in range(1, 13))
    )
    # without it the functions of the source know no masks of net changes
    live.sql("EXEC sp_configure 'clr enabled', 1; RECONFIGURE")
    live.enable("dbo.orders", supports_net_changes=1)
    live.sql("UPDATE dbo.orders SET note = N'early' WHERE id = 1")
    live.wait_captured()
    return live


def work(origin: Origin) -> None:
    for batch in (
        "INSERT INTO dbo.orders VALUES (20, N'new', NULL, N'old 20'), (21, N'new', N'd', N'old 21')",
        "UPDATE dbo.orders SET note = N'a' WHERE id IN (2, 3); UPDATE dbo.orders SET doc = N'other' WHERE id = 2",
        "DELETE FROM dbo.orders WHERE id = 21; DELETE FROM dbo.orders WHERE id = 4",
        "DELETE FROM dbo.orders WHERE id = 5; INSERT INTO dbo.orders VALUES (5, N'again', NULL, NULL)",
        "UPDATE dbo.orders SET id = 30 WHERE id = 6",
        "UPDATE dbo.orders SET old = N'newer' WHERE id = 7",
    ):
        origin.sql(f"BEGIN TRAN; {batch}; COMMIT")
    origin.wait_captured()


def of_function(origin: Origin, kind: str, after: Lsn, upto: Lsn) -> list[tuple]:
    function, option = FUNCTIONS[kind]
    rows = origin.sql(
        f"SELECT * FROM cdc.fn_cdc_get_{function}_changes_dbo_orders({after.next()}, {upto}, N'{option}')"
    )
    found = []
    for row in rows:
        mask = row["__$update_mask"]
        names = None if mask is None else [n for i, n in enumerate(COLUMNS) if mask[-1] >> i & 1]
        left_out = row["__$operation"] == 3 and "doc" not in names
        data = (row["id"], row["note"], "left out" if left_out else row["doc"])
        found.append((str(Lsn(row["__$start_lsn"])), OPERATIONS[row["__$operation"]], names, data))
    return sorted(found, key=repr)


def of_history(rows: list[dict], low: Lsn) -> list[tuple]:
    found = []
    for row in rows:
        if row["_lsn"] > str(low):
            left_out = row["_op"] == "B" and "doc" not in row["_changed"]
            data = (row["id"], row["note"], "left out" if left_out else row["doc"])
            found.append((row["_lsn"], row["_op"], row["_changed"], data))
    return sorted(found, key=repr)


def changes(origin: Origin, after: Lsn) -> list[dict]:
    """The change rows in their order."""
    return origin.sql(
        "SELECT c.*, m.tran_end_time AS time FROM cdc.dbo_orders_CT c JOIN cdc.lsn_time_mapping m"
        f" ON m.start_lsn = c.[__$start_lsn] WHERE c.[__$start_lsn] > {after}"
        " ORDER BY c.[__$start_lsn], c.[__$command_id], c.[__$seqval], c.[__$operation]"
    )


def colon(lsn: bytes) -> str:
    text = lsn.hex()
    return f"{text[:8]}:{text[8:16]}:{text[16:]}"


def records(rows: list[dict]) -> list[tuple]:
    """What a wide history holds of these change rows, but for the column that CDC leaves out of old images."""
    found, nothing = [], (None, None, None)
    for i, row in enumerate(rows):
        head = (colon(row["__$start_lsn"]), row["time"], row["__$command_id"])
        data = tuple(row[name] for name in DATA)
        if row["__$operation"] == 2:
            found.append(("insert", *head, *nothing, *data))
        elif row["__$operation"] == 1:
            found.append(("delete", *head, *data, *nothing))
        elif row["__$operation"] == 4:
            old = rows[i - 1]
            assert (old["__$operation"], old["__$seqval"]) == (3, row["__$seqval"])
            doc = old["doc"] if old["__$update_mask"][-1] & 0b100 else row["doc"]
            found.append(("update", *head, old["id"], old["note"], doc, *data))
    return sorted(found, key=repr)


def of_wide(rows: list[dict]) -> list[tuple]:
    names = ("type", "lsn", "ts", "_command_id", *(f"before_{n}" for n in DATA), *(f"after_{n}" for n in DATA))
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


def transactions(rows: list[dict]) -> list[tuple]:
    found: dict[bytes, list] = {}
    for row in rows:
        counts = found.setdefault(row["__$start_lsn"], [row["time"], 0, 0, 0])
        if row["__$operation"] != 3:
            counts[{2: 1, 4: 2, 1: 3}[row["__$operation"]]] += 1
    return sorted((str(Lsn(lsn)), time, "dbo", "orders", sum(n), *n) for lsn, (time, *n) in found.items())


def of_transactions(rows: list[dict]) -> list[tuple]:
    names = ("_lsn", "_commit_ts", "schema", "table", "events", "inserted", "updated", "deleted")
    return sorted(tuple(row[name] for name in names) for row in rows)


@pytest.mark.parametrize(
    ("format_", "kinds"),
    [
        pytest.param("iceberg", ("all", "net_mask", "no_updates", "wide", "transactions"), marks=pytest.mark.thorough),
        pytest.param("delta", ("net_merge", "wide", "transactions"), marks=pytest.mark.thorough),
        pytest.param("parquet", ("all", "net_merge", "wide", "transactions"), marks=pytest.mark.thorough),
        pytest.param("postgresql", ("net_mask", "wide", "transactions"), marks=pytest.mark.thorough),
    ],
)
def test_each_kind_holds_what_the_source_says_though_runs_meet(
    orders: Origin, format_, kinds: tuple[str, ...], request, monkeypatch
) -> None:
    orders.format = format_
    if format_ == "postgresql":
        orders.into(request.getfixturevalue("postgresql"))
    histories = Histories(orders, kinds)
    first = histories.load()
    # each was copied at a moment of its own
    low = max(read_through for read_through, _ in histories.at.values())
    for kind in kinds:
        if kind not in ("wide", "transactions"):
            assert sorted(row["id"] for row in histories.rows(kind) if row["_op"] == "R") == list(range(1, 13)), kind
            assert first[kind].after.events["copied"] == 12
        else:
            assert first[kind].after.events["copied"] == 0
    work(orders)
    held, before, cut = [], histories.tables(), orders.max_lsn()
    # one run has committed its first history, and is about to commit the next, when another one takes the rest
    stop = Stop(monkeypatch, dataclasses.replace(ABOUT_TO_COMMIT[format_], call=2))
    with stop.meanwhile(lambda: held.extend(orders.load(*before, tables_at_once=1, upto=cut).tables)):
        second = histories.load(upto=cut)
    upto = histories.at[kinds[0]][0]
    rest = len(kinds) - 1
    assert [table.error for table in held] == [None] * len(kinds)
    assert [table.sinks[0].outcome for table in held] == ["loaded", *["already"] * rest]
    assert [sink.outcome for sink in second.values()] == ["already", *["loaded"] * rest]
    assert {table.sinks[0].outcome for table in orders.load(*histories.tables(), upto=upto).tables} == {"already"}

    for kind in kinds:
        rows = histories.rows(kind)
        if kind in FUNCTIONS:
            assert of_history(rows, low) == of_function(orders, kind, low, upto), kind
    captured = changes(orders, low)
    assert of_transactions([r for r in histories.rows("transactions") if r["_lsn"] > str(low)]) == transactions(
        captured
    )
    wide = [row for row in histories.rows("wide") if row["lsn"] > colon(low.value)]
    assert of_wide(wide) == records(captured)
    assert {(row["schema"], row["table"]) for row in wide} == {("dbo", "orders")}
    # CDC leaves it out of deletes; of those that are not in the window nothing is known, since no copy is held
    deleted = {row["before_id"]: (row["before_old"], row["_unknown"]) for row in wide if row["type"] == "delete"}
    nothing = (None, ["before_old"])
    assert deleted == {4: nothing, 5: nothing, 6: nothing, 21: ("old 21", [])}
    if format_ != "iceberg":
        return
    everything = of_function(orders, "all", low, upto)
    assert of_history(histories.rows("no_updates"), low) == [row for row in everything if row[1] != "U"]

    # what was left out of the next window is what a history saw last, unless it may not have seen it
    orders.sql("DELETE FROM dbo.orders WHERE id IN (7, 8, 20)")
    orders.wait_captured()
    histories.load()
    for kind in ("all", "net_mask"):
        gone = {row["id"]: (row["old"], row["_unknown"]) for row in histories.rows(kind) if row["_lsn"] > str(upto)}
        assert gone == {7: ("newer", []), 8: ("old 8", []), 20: ("old 20", [])}, kind
    gone = {row["id"]: (row["old"], row["_unknown"]) for row in histories.rows("no_updates") if row["_lsn"] > str(upto)}
    assert gone == dict.fromkeys((7, 8, 20), (None, ["old"]))
    gone = {
        r["before_id"]: (r["before_old"], r["_unknown"]) for r in histories.rows("wide") if r["lsn"] > colon(upto.value)
    }
    assert gone == {7: ("newer", []), 8: nothing, 20: ("old 20", [])}


@pytest.mark.thorough
def test_a_replay_inserts_what_a_history_of_its_kind_lacks_and_no_net_changes(orders: Origin) -> None:
    histories = Histories(orders, ("wide", "no_updates", "all"))
    histories.load()
    low = histories.at["all"][0]
    work(orders)
    histories.load()
    upto = histories.at["all"][0]
    whole = {kind: sorted(map(repr, histories.rows(kind))) for kind in histories.kinds}
    session = orders.spark.newSession()
    session.sql(f"DELETE FROM {histories.name('wide')} WHERE type = 'update' OR after_id = 20")
    session.sql(f"DELETE FROM {histories.name('no_updates')} WHERE _op = 'I'")
    session.sql(f"DELETE FROM {histories.name('all')} WHERE id = 2 AND _op = 'U'")

    for suffix, kinds in (
        ("", histories.kinds),
        ("", ("all",)),
        ("_anew", ("wide", "no_updates")),
        ("_anew", ("wide",)),
    ):
        histories.kinds = kinds
        (receipt,) = orders.load(histories.table(), replay=ReplaySpec(low, upto, suffix)).tables
        assert receipt.error is None
        for kind in kinds:
            found = sorted(map(repr, histories.rows(kind + suffix)))
            if not suffix:
                assert found == whole[kind], kind
    assert of_wide(histories.rows("wide_anew")) == records(changes(orders, low))
    assert {row["_op"] for row in histories.rows("no_updates_anew")} == {"I", "D"}

    (refused,) = orders.load(
        histories.table(history=HistoryOptions("net")), replay=ReplaySpec(low, upto, "_net")
    ).tables
    assert "Replay into a history of all changes" in refused.error.message


def test_a_history_goes_on_as_what_it_is(orders: Origin) -> None:
    histories = Histories(orders, ("all",))
    histories.load()
    work(orders)
    (refused,) = orders.load(histories.table(history=HistoryOptions("net"))).tables
    assert "holds 'all' changes as events, and this load would add 'net' changes as events" in refused.error.message
    assert refused.error.permanent
    assert {sink.outcome for sink in histories.load().values()} == {"loaded"}
