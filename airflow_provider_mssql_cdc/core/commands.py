"""The commands that an advice names, written out with the arguments of the table that it is given for."""

from __future__ import annotations

import re
import shlex

from airflow_provider_mssql_cdc.core.checkpoint import Identity

_SHORT = re.compile(r"`mssql-cdc checkpoint (?P<action>set|reset)(?P<given>(?: --(?:shape|position) [^`\s]+)*)`")


def whole(text: str, identity: Identity) -> str:
    """An advice with each ``mssql-cdc checkpoint set`` or ``reset`` in it as it can be typed.

    :param identity: of the checkpoint that it is about
    """
    parts = {
        "--conn": identity.connection,
        "--database": identity.database,
        # of a schema with a dot the command could not tell where the table begins
        "--table": identity.table.quoted if "." in identity.table.schema else str(identity.table),
        "--target": identity.target,
        **({"--table-name": identity.name} if identity.name else {}),
    }
    where = " ".join(f"{option} {shlex.quote(value)}" for option, value in parts.items())

    def written_out(found: re.Match[str]) -> str:
        given = found["given"]
        if found["action"] == "set" and "--position" not in given:
            given += " --position LSN"
        return f"`mssql-cdc checkpoint {found['action']} {where}{given}`"

    return _SHORT.sub(written_out, text)
