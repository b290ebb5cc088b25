"""What must be there before the demo starts: Java, and the example DAGs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import airflow_provider_mssql_cdc
from airflow_provider_mssql_cdc.cli.exit import CommandError

JAVA_VERSIONS = (17, 21)

_VERSION = re.compile(r'version "(\d+)')


def check_java(env: Mapping[str, str] = os.environ) -> None:
    """Look for Java where Spark's own scripts look: JAVA_HOME, then PATH.

    :raises CommandError: if there is none, or one that Spark does not support
    """
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    home = env.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=env.get("PATH", os.defpath))
    try:
        if java is None:
            raise FileNotFoundError("no java on the PATH")
        said = subprocess.run([java, "-version"], env=dict(env), capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandError(f"Spark needs Java {wanted}: {error}; install it, or set JAVA_HOME") from error
    version = _VERSION.search(said)
    if version is None or int(version[1]) not in JAVA_VERSIONS:
        first = said.strip().partition("\n")[0]
        raise CommandError(f"Spark needs Java {wanted}, and {java} is: {first}; set JAVA_HOME to another")


def find_dags() -> Path:
    """The folder of the example DAGs.

    :raises CommandError: outside a clone of the repository
    """
    folder = Path(airflow_provider_mssql_cdc.__file__).parents[1] / "dags"
    if not (folder / "shop_incremental.py").is_file():
        raise CommandError(f"the demo runs the repository's example DAGs, and {folder} has none; start it in a clone")
    return folder
