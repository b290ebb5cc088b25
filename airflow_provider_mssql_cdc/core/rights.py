"""Who may read a change table as he reads another one of the same source table, and the T-SQL that sees to it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.table import literal

_OWNER = "dbo"

# What each says of the same place counts once: a denial more than that a column is left out, and that more than a
# grant, since the copies all have the same grantor, whose newer word takes away his older one.
_SAYS = "CASE {}.state WHEN 'D' THEN 1 WHEN 'R' THEN 2 ELSE 3 END"
_DENIED, _LEFT_OUT = "r.says = 1", "r.says = 2"
# A column that was added under the name of one that was dropped is another one, by its id in the source table; those of
# CDC itself have none.
_RIGHTS = (
    f"SELECT p.name, c.name, MIN({_SAYS.format('g')}), MIN(CASE WHEN n.name IS NULL THEN 0 "
    "WHEN ISNULL(a.column_id, 0) = ISNULL(b.column_id, 0) THEN 2 ELSE 1 END) "
    "FROM sys.database_permissions AS g "
    "JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id "
    "LEFT JOIN sys.columns AS c ON c.object_id = g.major_id AND c.column_id = g.minor_id "
    "LEFT JOIN sys.columns AS n ON n.object_id = OBJECT_ID(@new) AND n.name = c.name "
    "LEFT JOIN cdc.captured_columns AS a ON a.object_id = c.object_id "
    "AND a.column_name = c.name COLLATE DATABASE_DEFAULT "
    "LEFT JOIN cdc.captured_columns AS b ON b.object_id = n.object_id "
    "AND b.column_name = n.name COLLATE DATABASE_DEFAULT "
    "WHERE g.class = 1 AND g.type = 'SL' AND (g.major_id = OBJECT_ID(@old) "
    # a grant on the whole table must not take them away
    "OR (g.major_id = OBJECT_ID(@new) AND g.minor_id <> 0 AND g.state = 'D')) "
    "GROUP BY g.major_id, p.name, c.name"
)
_OF_NEW = (
    "SELECT 1 FROM sys.database_permissions AS h "
    "JOIN sys.database_principals AS q ON q.principal_id = h.grantee_principal_id "
    "LEFT JOIN sys.columns AS d ON d.object_id = h.major_id AND d.column_id = h.minor_id "
    "WHERE h.class = 1 AND h.major_id = OBJECT_ID(@new) AND h.type = 'SL' "
    "AND q.name COLLATE DATABASE_DEFAULT = r.grantee "
    "AND ISNULL(d.name, N'') COLLATE DATABASE_DEFAULT = ISNULL(r.place, N'')"
)
_COMMAND = (
    f"CASE WHEN {_DENIED} THEN N'DENY' WHEN {_LEFT_OUT} THEN N'REVOKE' ELSE N'GRANT' END + N' SELECT ' "
    "+ ISNULL(N'(' + QUOTENAME(r.place) + N') ', N'') + N'ON ' + @new + N' TO ' + QUOTENAME(r.grantee)"
)
# The server alone knows the rights: a login that loads sees no grants but its own. Nobody may grant himself something.
# The batch itself has no variables, so that those of two tables can be run as one. All or nothing is done: a batch that
# ends between a grant and a denial would leave somebody with more than he had. Denials come first, and those on columns
# last once more, since a right on the whole table may take away those on its columns. What the new table says already
# stands, unless the old one denies.
_COPY = (
    "SET XACT_ABORT ON; BEGIN TRAN; "
    "DECLARE @all TABLE (n int, command nvarchar(max)); DECLARE @n int = 0, @do nvarchar(max) = N''; "
    "DECLARE @rights TABLE (grantee sysname, place sysname NULL, says int, same int); "
    f"INSERT INTO @rights {_RIGHTS}; "
    "INSERT INTO @rights SELECT @reader, NULL, 3, 0 WHERE @reader NOT IN (N'', USER_NAME()) "
    "AND NOT EXISTS (SELECT 1 FROM @rights AS r WHERE r.grantee = @reader AND r.place IS NULL); "
    f"INSERT INTO @all SELECT ROW_NUMBER() OVER (ORDER BY t.turn, CASE WHEN {_DENIED} THEN 1 ELSE 2 END, r.place, "
    f"r.grantee), {_COMMAND} FROM (SELECT DISTINCT r.grantee, r.place, r.says FROM @rights AS r "
    "WHERE r.grantee <> USER_NAME() AND (r.place IS NULL OR r.same = 2 OR (r.same = 1 AND r.says < 3)) "
    f"AND (({_DENIED} AND r.place IS NOT NULL) OR NOT EXISTS ({_OF_NEW} AND (r.says > 1 OR h.state = 'D')))) AS r "
    f"JOIN (VALUES (1), (2)) AS t (turn) ON t.turn = 1 OR ({_DENIED} AND r.place IS NOT NULL); "
    "WHILE @do IS NOT NULL BEGIN "
    "EXEC (@do); SET @n = @n + 1; SET @do = (SELECT command FROM @all WHERE n = @n); "
    "END; "
    "COMMIT; "
    f"SELECT DISTINCT r.grantee AS not_copied FROM @rights AS r WHERE (r.place IS NOT NULL OR {_DENIED}) "
    f"AND NOT EXISTS ({_OF_NEW} AND {_SAYS.format('h')} = r.says) ORDER BY not_copied"
)


@dataclass(frozen=True, slots=True)
class CopiedRights:
    """Whose rights on a change table were copied to that of another instance; those who had them there before are not
    named.

    :param readers: who may read it
    :param denied: who may not
    :param of_columns: who have rights on single columns, or are denied some
    :param left: who have denials or rights on single columns that could not be copied
    """

    readers: list[str]
    denied: list[str]
    of_columns: list[str]
    left: list[str]


def copying(old: str, new: str, reader: str) -> str:
    """The T-SQL that gives the rights of one change table on another one, all of them or none. It may be run twice.

    Its rows name those of whose denials and rights on single columns something could not be copied: what is on columns
    that the new one has not, and what is the own of who runs it.

    :param old: name of the one in T-SQL, with its schema
    :param new: name of the other one
    :param reader: database user who is to read it, too, where he is not denied the old one; empty for none
    """
    given = {"old": old, "new": new, "reader": reader if reader.casefold() != _OWNER else ""}
    called = ", ".join(f"@{name} = {literal(value)}" for name, value in given.items())
    types = "N'@old nvarchar(300), @new nvarchar(300), @reader sysname'"
    return f"EXEC sp_executesql {literal(_COPY)}, {types}, {called};"
