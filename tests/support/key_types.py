"""Every type that a key can have, with values at its edges, as T-SQL."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.collations import names

COLLATIONS = tuple(names.COLLATIONS)
ASCII = ("N''", "N'a'", "N'a''b'", "N'co-op'", "N'zz  '", "N'  b'")
TEXTS = (*ASCII, "N'Straße'", "N'é'")
TYPES = {
    "bit": ("0", "1"),
    "tinyint": ("0", "7", "255"),
    "smallint": ("-32768", "0", "32767"),
    "int": ("-2147483648", "-1", "2147483647"),
    "bigint": ("-9223372036854775808", "0", "9223372036854775807"),
    "decimal(38,4)": ("-9999999999999999999999999999999999.9999", "-0.0001", "0", "1.5", "12345678901234567890.1234"),
    "numeric(9,0)": ("-999999999", "0", "999999999"),
    "money": ("-922337203685477.5808", "0.0001", "922337203685477.5807"),
    "smallmoney": ("-214748.3648", "0", "214748.3647"),
    "float": ("-1.7976931348623157E+308", "-0.1", "0", "0.1", "1E-300", "0.30000000000000004", "3"),
    "real": ("-3.4E+38", "0.1", "0.33333334", "1E-30", "16777217"),
    "date": ("'0001-01-01'", "'1582-10-10'", "'9999-12-31'"),
    "time(7)": ("'00:00:00'", "'12:34:56.1234567'", "'23:59:59.9999999'"),
    "time(0)": ("'00:00:00'", "'23:59:59'"),
    "smalldatetime": ("'1900-01-01'", "'2026-03-04 05:06'", "'2079-06-06 23:59'"),
    "datetime": ("'1753-01-01'", "'2026-03-04 05:06:07.003'", "'2026-03-04 05:06:07.007'", "'9999-12-31 23:59:59.997'"),
    "datetime2(7)": ("'0001-01-01'", "'2026-03-04 05:06:07.1234567'", "'9999-12-31 23:59:59.9999999'"),
    "datetime2(3)": ("'0001-01-01'", "'2026-03-04 05:06:07.123'"),
    "datetimeoffset(7)": (
        "'0001-01-01 14:00:00 +14:00'", "'2026-03-04 05:06:07.1234567 -08:30'", "'2026-03-04 05:06:07.1234567 +02:00'",
    ),
    "uniqueidentifier": (
        "'00000000-0000-0000-0000-000000000000'", "'0000000A-0000-0000-0000-000000000001'",
        "'FF000000-0000-0000-0000-000000000000'", "'00000000-0000-0000-00FF-000000000000'",
    ),
    "binary(4)": ("0x", "0x00000001", "0xFF00"),
    "varbinary(8)": ("0x", "0x00FF", "0x10", "0xFFFFFFFFFFFFFFFF"),
    **{f"{type_} COLLATE {name}": TEXTS for type_ in ("nchar(10)", "nvarchar(10)") for name in COLLATIONS},
    # the order of all characters is not published for sort order 52, nor is char with UTF-8 simulated
    **{f"{type_} COLLATE {COLLATIONS[0]}": ASCII for type_ in ("char(10)", "varchar(10)")},
    **{f"{type_} COLLATE {name}": TEXTS for type_ in ("char(10)", "varchar(10)") for name in COLLATIONS[1:4]},
    f"varchar(10) COLLATE {COLLATIONS[4]}": TEXTS,
}  # fmt: skip
