"""The task group: a sensor and a load from one set of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from airflow.providers.common.compat.sdk import TaskGroup

from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.hooks.parameters import seconds
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor

_OF_GROUP = frozenset(inspect.signature(TaskGroup.__init__).parameters) - {"self", "group_id"}


def _max_idle(*given: Mapping[str, Any]) -> dict[str, Any]:
    """The one ``max_idle`` of sensor and load, if any of the parameters say one.

    :raises ValueError: for two
    """
    # The load leaves alone what failed until then, and the sensor calls for it from then on: else a run would follow
    # the other, and fail.
    said = {seconds(each["max_idle"]): each["max_idle"] for each in given if "max_idle" in each}
    if len(said) > 1:
        raise ValueError(f"max_idle is given as {' and as '.join(map(repr, said.values()))}: sensor and load need one")
    return {"max_idle": next(iter(said))} if said else {}


class MsSqlCdcTaskGroup(TaskGroup):
    """
    Wait until tables have changed, and load them: ``MsSqlCdcSensor`` as ``wait``, ``MsSqlCdcLoadOperator`` as ``load``.

    All parameters but these go to both tasks, those of ``TaskGroup`` to the group. ``max_idle`` goes to both, wherever
    it is given.

    :param group_id: of the group
    :param tables: as for ``MsSqlCdcLoadOperator``
    :param target: as for ``MsSqlCdcLoadOperator``
    :param wait: parameters of the sensor alone, such as ``poll_interval``; None for no sensor: then each run loads
    :param load: parameters of the load alone, such as ``retries``, ``pool`` or ``outlets``
    :param spark: parameters of the submission, which are those of ``SparkSubmitOperator``, such as ``conf``
    :ivar wait: the sensor; None where there is none
    :ivar load: the load
    """

    wait: MsSqlCdcSensor | None
    load: MsSqlCdcLoadOperator

    def __init__(
        self,
        group_id: str,
        *,
        tables: Sequence[str | TableEntry],
        target: str,
        wait: Mapping[str, Any] | None = MappingProxyType({}),
        load: Mapping[str, Any] | None = None,
        spark: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        group = {name: value for name, value in parameters.items() if name in _OF_GROUP}
        both = {name: value for name, value in parameters.items() if name not in _OF_GROUP}
        both |= {"tables": tables, "target": target}
        both |= _max_idle(both, wait or {}, load or {})
        super().__init__(group_id, **group)
        with self:
            self.wait = None if wait is None else MsSqlCdcSensor(task_id="wait", **{**both, **wait})
            upto = {} if self.wait is None else {"upto": self.wait.output}
            self.load = MsSqlCdcLoadOperator(task_id="load", **{**both, **upto, **(spark or {}), **(load or {})})
            if self.wait is not None:
                self.wait >> self.load
