"""Section A4: net changes, by the nine cases of first and last operation, masks and merge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.conformance.client import Row, literal
from tests.support.conformance.database import Database

_INSERT = "INSERT INTO dbo.t VALUES (1, 'x', 1)"
_AGAIN = "INSERT INTO dbo.t VALUES (1, 'z', 3)"
_UPDATE_A, _UPDATE_B = "UPDATE dbo.t SET a = 'y' WHERE id = 1", "UPDATE dbo.t SET b = 2 WHERE id = 1"
_DELETE = "DELETE FROM dbo.t WHERE id = 1"

_CASES = [
    pytest.param(False, [_INSERT], [(2, 1, "x", 1)], id="ins"),
    pytest.param(False, [_INSERT, _UPDATE_A], [(2, 1, "y", 1)], id="ins-upd"),
    pytest.param(False, [_INSERT, _UPDATE_A, _UPDATE_B], [(2, 1, "y", 2)], id="ins-upd-upd"),
    pytest.param(False, [_INSERT, _DELETE], [], id="ins-del"),
    pytest.param(False, [_INSERT, _UPDATE_A, _DELETE], [], id="ins-upd-del"),
    pytest.param(False, [_INSERT, _DELETE, _AGAIN], [(2, 1, "z", 3)], id="ins-del-ins"),
    pytest.param(True, [_UPDATE_A], [(4, 1, "y", 1)], id="upd"),
    pytest.param(True, [_UPDATE_A, _UPDATE_B], [(4, 1, "y", 2)], id="upd-upd"),
    pytest.param(True, [_DELETE], [(1, 1, "x", 1)], id="del"),
    pytest.param(True, [_UPDATE_A, _DELETE], [(1, 1, "y", 1)], id="upd-del"),
    pytest.param(True, [_DELETE, _AGAIN], [(4, 1, "z", 3)], id="del-ins"),
    pytest.param(True, [_DELETE, _AGAIN, _UPDATE_A], [(4, 1, "y", 3)], id="del-ins-upd"),
    pytest.param(True, [_DELETE, _AGAIN, _DELETE], [(1, 1, "z", 3)], id="del-ins-del"),
    pytest.param(True, [_UPDATE_B, _DELETE, _AGAIN], [(4, 1, "z", 3)], id="upd-del-ins"),
]


def _net(db: Database, low: bytes, option: str = "all", columns: str = "__$operation, id, a, b") -> list[Row]:
    return db.run(
        "DECLARE @max binary(10) = sys.fn_cdc_get_max_lsn()"
        f" SELECT {columns} FROM cdc.fn_cdc_get_net_changes_dbo_t({literal(low)}, @max, N'{option}') ORDER BY id"
    )


def _prepare(db: Database, present: bool) -> bytes:
    """Where the window begins: after the row came, if it is there before."""
    if not present:
        return db.min_lsn()
    db.commit(_INSERT)
    return db.value("SELECT sys.fn_cdc_increment_lsn(sys.fn_cdc_get_max_lsn())")


@pytest.mark.parametrize(("present", "batches", "wanted"), _CASES)
def test_17_across_transactions(t: Database, present: bool, batches: list[str], wanted: list[Row]) -> None:
    low = _prepare(t, present)
    t.commit(*batches)
    assert _net(t, low) == wanted
    starts = _net(t, low, columns="__$start_lsn")
    # of the last change of the key
    assert starts == ([(t.commits()[-1],)] if wanted else [])


@pytest.mark.parametrize(("present", "batches", "wanted"), _CASES)
def test_17_inside_one_transaction(t: Database, present: bool, batches: list[str], wanted: list[Row]) -> None:
    low = _prepare(t, present)
    t.commit(" ".join(["BEGIN TRAN", *batches, "COMMIT"]))
    assert _net(t, low) == wanted


@pytest.mark.parametrize(("present", "batches", "wanted"), _CASES)
def test_18_all_with_merge(t: Database, present: bool, batches: list[str], wanted: list[Row]) -> None:
    low = _prepare(t, present)
    t.commit(*batches)
    merged = [(1 if operation == 1 else 5, None, *rest) for operation, *rest in wanted]
    assert _net(t, low, "all with merge", "__$operation, __$update_mask, id, a, b") == merged


@pytest.mark.parametrize(("present", "batches", "wanted"), _CASES)
def test_18_all_has_no_masks(t: Database, present: bool, batches: list[str], wanted: list[Row]) -> None:
    low = _prepare(t, present)
    t.commit(*batches)
    assert _net(t, low, "all", "__$update_mask") == [(None,) for _ in wanted]


def test_17_key_update_is_delete_and_insert(t: Database) -> None:
    low = _prepare(t, True)
    t.commit("UPDATE dbo.t SET id = 7 WHERE id = 1")
    assert _net(t, low) == [(1, 1, "x", 1), (2, 7, "x", 1)]


def test_17_window_that_begins_later(t: Database) -> None:
    t.commit(_INSERT, _UPDATE_A, _UPDATE_B, _DELETE)
    inserted, first, second, deleted = t.commits()
    assert _net(t, inserted) == []
    assert _net(t, first) == [(1, 1, "y", 2)]
    assert _net(t, second) == [(1, 1, "y", 2)]
    assert _net(t, deleted) == [(1, 1, "y", 2)]


def test_17_composite_key_of_an_index(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(5) NOT NULL, b int NOT NULL)")
    db.run("CREATE UNIQUE INDEX ux ON dbo.t (a, b)")
    db.track("t", index_name="ux", supports_net_changes=1)
    db.commit("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'x', 2)")
    low = db.min_lsn()
    db.commit("UPDATE dbo.t SET b = 3 WHERE id = 2")
    assert _net(db, low) == [(2, 1, "x", 1), (2, 2, "x", 3)]


# Masks are evaluated where the server option clr enabled was on when the table was enabled.


@pytest.fixture
def clr(db: Database) -> Iterator[None]:
    """Server option clr enabled."""
    before = db.value("SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'clr enabled'")
    _configure(db, 1)
    yield
    _configure(db, before)


@pytest.fixture
def no_clr(db: Database) -> Iterator[None]:
    """Server option clr enabled switched off."""
    before = db.value("SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'clr enabled'")
    _configure(db, 0)
    yield
    _configure(db, before)


def _configure(db: Database, value: int) -> None:
    db.run(f"EXEC sp_configure 'clr enabled', {value} RECONFIGURE")


def _create(db: Database) -> list[str]:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10), b int)")
    db.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 1")
    return [message.text for message in db.messages]


@pytest.mark.usefixtures("clr")
@pytest.mark.parametrize(
    ("present", "batches", "wanted"),
    [
        (False, [_INSERT], [(2, None)]),
        (False, [_INSERT, _UPDATE_A], [(2, None)]),
        (True, [_UPDATE_A], [(4, b"\x02")]),
        (True, [_UPDATE_A, _UPDATE_B], [(4, b"\x06")]),
        (True, [_DELETE], [(1, None)]),
        (True, [_UPDATE_A, _DELETE], [(1, None)]),
        # all bits, since delete and insert set them all
        (True, [_DELETE, _AGAIN], [(4, b"\x07")]),
    ],
    ids=["ins", "ins-upd", "upd", "upd-upd", "del", "upd-del", "del-ins"],
)
def test_18_all_with_mask(db: Database, present: bool, batches: list[str], wanted: list[Row]) -> None:
    assert not any("mask" in text for text in _create(db))
    low = _prepare(db, present)
    db.commit(*batches)
    assert _net(db, low, "all with mask", "__$operation, __$update_mask") == wanted


@pytest.mark.usefixtures("no_clr")
def test_81_without_clr_the_client_is_told_and_masks_are_null(db: Database) -> None:
    notes = _create(db)
    assert [text for text in notes if "Job 'cdc." not in text] != []
    assert {message.severity for message in db.messages} <= {0, 10}
    db.commit(_INSERT)
    low = db.value("SELECT sys.fn_cdc_increment_lsn(sys.fn_cdc_get_max_lsn())")
    db.commit(_UPDATE_A)
    assert _net(db, low, "all with mask", "__$operation, __$update_mask, a") == [(4, None, "y")]
