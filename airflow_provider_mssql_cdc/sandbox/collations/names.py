"""The collations that are simulated; every other one is refused by its name."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation.

    :param wire: the five bytes by which TDS names it: LCID and flags (MS-TDS, COLLATION), sort order
    :param codes: the table by which varchar compares: ``iso_1`` sort order 52, ``word`` and ``word_100`` word sort with
        the weights of Windows 2000 and 2008, ``word_cs`` the first of them with case, ``bin2`` by code
    :param unicode: the same for nvarchar
    :param case_sensitive: whether it tells upper from lower case
    :param utf8: whether varchar holds UTF-8
    """

    name: str
    wire: bytes
    codes: str
    unicode: str
    case_sensitive: bool = False
    utf8: bool = False


DEFAULT = "SQL_Latin1_General_CP1_CI_AS"
"""The server's collation, and that of databases for which none is named."""

COLLATIONS = {
    each.name: each
    for each in (
        Collation(DEFAULT, bytes.fromhex("0904d00034"), "iso_1", "word"),
        Collation("Latin1_General_CI_AS", bytes.fromhex("0904d00000"), "word", "word"),
        Collation("Latin1_General_CS_AS", bytes.fromhex("0904c00000"), "word_cs", "word_cs", case_sensitive=True),
        Collation("Latin1_General_BIN2", bytes.fromhex("0904000200"), "bin2", "bin2", case_sensitive=True),
        Collation("Latin1_General_100_CI_AS_SC_UTF8", bytes.fromhex("0904d02400"), "word_100", "word_100", utf8=True),
    )
}
"""By name."""

_BY_LOWER = {name.lower(): each for name, each in COLLATIONS.items()}


def named(name: str, line: int = 1, *, before_2019: bool = False) -> Collation:
    """A collation by name, whatever its case.

    :param line: of the statement, for the error
    :param before_2019: the server has no UTF-8 yet
    :raises SqlError: 50000 for one that is not simulated, 448 for a name that is none
    """
    found = _BY_LOWER.get(name.lower())
    if found is not None and not (found.utf8 and before_2019):
        return found
    if found is not None or "_" not in name:
        raise SqlError.of(448, name, line=line)
    raise Unsupported(f"the collation {name}", line=line)
