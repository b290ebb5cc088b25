"""Which values the parameters of a load may have."""

from __future__ import annotations

import datetime
from typing import Any

from airflow_provider_mssql_cdc.core.change_tracking import Retention
from airflow_provider_mssql_cdc.core.copy_wanted import ISOLATIONS
from airflow_provider_mssql_cdc.core.entry_values import CHOICES, read_on_gap
from airflow_provider_mssql_cdc.core.shapes import DELETES
from airflow_provider_mssql_cdc.hooks.parameters import AUTO, seconds
from airflow_provider_mssql_cdc.hooks.watch import ON_DISABLED
from airflow_provider_mssql_cdc.operators.job_files import COPIES_KEPT


def check_values(load: Any) -> None:
    """Refuse values that have no meaning.

    :param load: the operator, with all of its parameters
    :raises ValueError: naming the first
    """
    choices = {
        "deletes": (load.deletes, DELETES),
        "on_disabled": (load.on_disabled, ON_DISABLED),
        "isolation": (load.isolation, ISOLATIONS),
        **{name: (getattr(load, name), known) for name, known in CHOICES.items()},
    }
    for name, (value, known) in choices.items():
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(known)}")
    read_on_gap("", load.on_gap)
    Retention.of(load.ct_retention)
    for name, limit in {"max_transactions": load.max_transactions, "max_rows": load.max_rows}.items():
        if limit is not None and limit < 1:
            raise ValueError(f"{name}={limit}: expected at least 1")
    timed = load.copy_seconds
    if timed is not None and timed != AUTO and (isinstance(timed, str) or (seconds(timed) or 0.0) <= 0):
        raise ValueError(f'copy_seconds={load.copy_seconds!r}: expected more than 0 s, None or "auto"')
    if load.copy_rows < 1:
        raise ValueError(f"copy_rows={load.copy_rows}: expected at least 1")
    if load.copy_chunk_seconds is not None and load.copy_chunk_seconds <= 0:
        raise ValueError(f"copy_chunk_seconds={load.copy_chunk_seconds}: expected more than 0 s, or None")
    for name, most in {
        "copy_rows_per_second": load.copy_rows_per_second,
        "throttle_lag": load.throttle_lag,
    }.items():
        if most is not None and most <= 0:
            raise ValueError(f"{name}={most}: expected more than 0, or None")
    if not datetime.timedelta() < load.copy_keep <= COPIES_KEPT:
        raise ValueError(f"copy_keep={load.copy_keep}: expected more than 0 s, and at most {COPIES_KEPT}")
    if load.enable_lock_timeout <= 0:
        raise ValueError(f"enable_lock_timeout={load.enable_lock_timeout}: expected more than 0 s")
    if load.small_window < 0:
        raise ValueError(f"small_window={load.small_window}: expected at least 0")
    if load.max_idle is not None and load.max_idle <= 0:
        raise ValueError(f"max_idle={load.max_idle}: expected more than 0 s; it cannot be switched off")
