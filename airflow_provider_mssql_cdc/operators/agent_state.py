"""Says how SQL Server Agent is where a job waited for the capture in vain: the job itself may not be able to see it."""

from __future__ import annotations

import dataclasses
import logging
from contextlib import closing

from airflow_provider_mssql_cdc.core.database import AgentHealth, Running
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.receipt import JobError, Receipt, TableReceipt
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

log = logging.getLogger(__name__)


def with_agent_state(receipt: Receipt, mssql_conn_id: str) -> Receipt:
    """The receipt, with the state of Agent and capture job in the errors of tables that the capture kept back.

    :param mssql_conn_id: asked only if there is such a table; if it does not answer, the errors stay as they are
    """
    if not any(_kept_back(table) for table in receipt.tables):
        return receipt
    try:
        with closing(MsSqlCdcHook(mssql_conn_id)) as hook:
            health = hook.agent_health()
    except MsSqlCdcError as error:
        log.warning("the state of SQL Server Agent cannot be seen: %s", error)
        return receipt
    tables = (_with(table, health) if _kept_back(table) else table for table in receipt.tables)
    return dataclasses.replace(receipt, tables=tuple(tables))


def _kept_back(table: TableReceipt) -> bool:
    return any(map(_is_of_capture, table.errors)) or (table.copying is not None and table.copying.waits_for is not None)


def _is_of_capture(error: JobError) -> bool:
    return error.kind == CaptureLagError.__name__


def _with(table: TableReceipt, health: AgentHealth) -> TableReceipt:
    failed = {
        shape: dataclasses.replace(error, message=_said(error.message, health)) if _is_of_capture(error) else error
        for shape, error in table.failed.items()
    }
    copying = table.copying
    if copying is not None and copying.waits_for is not None:
        said = _said(copying.waits_for, health)
        if Running.STOPPED in (health.agent, health.capture_job):
            # it would wait for ever
            error = JobError(CaptureLagError.__name__, said, permanent=False)
            failed, copying = failed | dict.fromkeys(copying.shapes, error), None
        else:
            copying = dataclasses.replace(copying, waits_for=said)
    return dataclasses.replace(table, failed=failed, copying=copying)


def _said(message: str, health: AgentHealth) -> str:
    return f"{message} Now: {health.detail}."
