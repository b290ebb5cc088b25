"""T-SQL: day and month in texts, as the session's DATEFORMAT and its login's language have them."""

from __future__ import annotations

import datetime

import pytest

from tests.support.conformance.database import Database

_FEBRUARY, _MARCH = datetime.datetime(2026, 2, 3, 4, 5), datetime.datetime(2026, 3, 2, 4, 5)
_SWAPPING = ("dmy", "dym")
_KEEPING = ("mdy", "ymd", "myd")


@pytest.mark.parametrize("type_", ["datetime", "smalldatetime"])
@pytest.mark.parametrize("text", ["'2026-02-03 04:05'", "N'2026-02-03 04:05:00'", "' 2026-2-3 04:05'"])
@pytest.mark.parametrize("form", [*_SWAPPING, *_KEEPING])
def test_tsql_a_text_with_hyphens_goes_by_the_format(plain: Database, type_: str, text: str, form: str) -> None:
    wanted = _MARCH if form in _SWAPPING else _FEBRUARY
    plain.run(f"SET DATEFORMAT {form} CREATE TABLE dbo.d (d {type_} NOT NULL) INSERT INTO dbo.d VALUES ({text})")
    assert plain.run("SELECT d FROM dbo.d") == [(wanted,)]
    assert plain.run(f"SELECT d FROM dbo.d WHERE d = {text}") == [(wanted,)]
    assert plain.run(f"SELECT CAST({text} AS {type_}), CONVERT({type_}, {text})") == [(wanted, wanted)]
    declared = f"DECLARE @d {type_} = {text} SELECT @d"
    assert plain.value(declared) == wanted
    assert plain.value("EXEC sp_executesql N'SELECT CAST(@t AS datetime)', N'@t nvarchar(30)', " + text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "CAST('20260203 04:05' AS datetime)",
        "CAST('2026-02-03T04:05:00' AS datetime)",
        "CAST('2026-02-03T04:05:00.000' AS smalldatetime)",
        "CONVERT(datetime, '2026-02-03 04:05:00', 120)",
        "CONVERT(datetime, '2026-02-03 04:05:00.000', 121)",
        "CAST(CAST('2026-02-03 04:05' AS datetime2) AS datetime)",
        "CAST(CAST('2026-02-03 04:05 +00:00' AS datetimeoffset) AS datetime)",
        "DATEADD(minute, 245, CAST(CAST('2026-02-03' AS date) AS datetime))",
    ],
)
def test_tsql_texts_that_no_format_swaps(plain: Database, text: str) -> None:
    plain.run("SET DATEFORMAT dmy")
    assert plain.value(f"SELECT {text}") == _FEBRUARY


def test_tsql_a_day_alone_is_swapped_too(plain: Database) -> None:
    plain.run("SET DATEFORMAT dmy")
    assert plain.value("SELECT CAST('2026-02-03' AS datetime)") == datetime.datetime(2026, 3, 2)
    assert plain.value("SELECT DATEADD(day, 1, '2026-02-03')") == datetime.datetime(2026, 3, 3)


@pytest.mark.parametrize(
    ("form", "text", "source", "type_"),
    [
        ("dmy", "'2026-02-13 04:05'", "varchar", "datetime"),
        ("dmy", "N'2026-02-13 04:05'", "nvarchar", "smalldatetime"),
        ("mdy", "'2026-13-02 04:05'", "varchar", "datetime"),
    ],
)
def test_tsql_there_is_no_thirteenth_month(plain: Database, form: str, text: str, source: str, type_: str) -> None:
    error = plain.error(f"SET DATEFORMAT {form} SELECT CAST({text} AS {type_})")
    assert error.number == 242
    assert f"{source} data type to a {type_} data type resulted in an out-of-range value" in error.text
    assert plain.value(f"SELECT TRY_CAST({text} AS {type_})") is None


def test_tsql_the_format_ends_with_the_batch_that_set_it(plain: Database) -> None:
    text = "SELECT CAST(''2026-02-03 04:05'' AS datetime)"
    results = plain.sets(f"EXEC('SET DATEFORMAT dmy {text}') EXEC('{text}')")
    assert [each.rows for each in results] == [[(_MARCH,)], [(_FEBRUARY,)]]
    results = plain.sets(f"SET DATEFORMAT dmy EXEC('SET DATEFORMAT mdy {text}') EXEC('{text}')")
    assert [each.rows for each in results] == [[(_FEBRUARY,)], [(_MARCH,)]]


def test_tsql_a_language_has_a_format_and_a_first_day(plain: Database) -> None:
    plain.run("SET LANGUAGE British")
    sunday = "CAST('20260201' AS datetime)"
    shown = f"SELECT @@LANGUAGE, @@DATEFIRST, CAST('2026-02-03 04:05' AS datetime), DATEPART(weekday, {sunday})"
    assert plain.run(shown) == [("British", 1, _MARCH, 7)]
    plain.run("SET DATEFIRST 3")
    assert plain.run(shown) == [("British", 3, _MARCH, 5)]
    plain.run("SET LANGUAGE us_english")
    assert plain.run(shown) == [("us_english", 7, _FEBRUARY, 1)]


def test_tsql_map_time_to_lsn_reads_its_text_so(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    last = t.max_lsn()
    before = "sys.fn_cdc_map_time_to_lsn('smallest greater than', '{}')"
    # the second day of the twelfth month, and the twelfth day of the second
    year = t.value("SELECT YEAR(GETDATE())")
    found = f"SELECT {before.format(f'{year - 1}-12-02 00:00')}, {before.format(f'{year + 1}-02-12 00:00')}"
    assert t.run(found) == [(last, None)]
    assert t.run(f"SET DATEFORMAT dmy {found}") == [(last, None)]
    assert t.number(f"SELECT {before.format(f'{year - 1}-12-13 00:00')}") == 242


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_tsql_readers_with_locks_go_by_the_format(plain: Database, isolation: str) -> None:
    plain.run("CREATE TABLE dbo.d (d datetime PRIMARY KEY) INSERT INTO dbo.d VALUES ('20260302'), ('20260203')")
    plain.run(f"SET DATEFORMAT dmy SET TRANSACTION ISOLATION LEVEL {isolation}")
    found = plain.run("SELECT d FROM dbo.d WITH (READCOMMITTEDLOCK) WHERE d = '2026-02-03 00:00'")
    assert found == [(datetime.datetime(2026, 3, 2),)]
