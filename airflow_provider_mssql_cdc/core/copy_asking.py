"""What a person may ask of a table's copy as it stands, and how the answer is stored."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP
from airflow_provider_mssql_cdc.core.exceptions import CopyAskedError
from airflow_provider_mssql_cdc.core.variables import Variables

START, RESUME = "start", "resume"
ACTIONS = (START, PAUSE, RESUME, STOP)
"""What a person may ask for."""

_WANTED = {COPY: "copying", PAUSE: "paused", STOP: "to be stopped"}


@dataclass(frozen=True, slots=True)
class Standing:
    """What is stored of a table's copy.

    :param request: the one that stands
    """

    identity: Identity
    checkpoint: Checkpoint | None
    request: CopyRequest | None

    def ending_of(self, id_: str) -> str | None:
        """How a copy ended; None where it did not, or nothing is known of it any more."""
        return None if self.checkpoint is None else self.checkpoint.ending_of(id_)

    @property
    def progress(self) -> str:
        """How far the copy is that was asked for."""
        found = self.checkpoint
        said = [str(self), *(copy.progress for copy in (found.copies if found is not None else ()))]
        if found is not None and (failure := found.failure()) is not None:
            said.append(f"the load fails since {failure.began.isoformat(' ', 'seconds')}: {failure.reason}")
        return "; ".join(said)

    @property
    def cannot_be_done(self) -> str | None:
        """Why no load will do the copy: all that the table's sinks have failed with for good since it was asked for."""
        found, request = self.checkpoint, self.request
        if found is None or request is None or request.at is None or not found.sinks:
            return None
        failures = [sink.failed for sink in found.sinks.values()]
        mends = request.mends(found)
        if any(f is None or f.time < request.at or (mends and f.copy_mends) for f in failures):
            return None
        return "; ".join(dict.fromkeys(failure.reason for failure in failures if failure is not None))

    @property
    def ending(self) -> str | None:
        """How the copy ended that was asked for; None where it did not, or none was."""
        request = self.request
        if request is None or not request.has_ended(self.checkpoint):
            return None
        return request.ending(self.checkpoint) or "no longer under way"

    def __str__(self) -> str:
        if self.request is None:
            return "no copy is asked for"
        of = f" of the rows where {self.request.where}" if self.request.where else ""
        return f"copy {self.request.id}{of}, asked for at {self.asked_at}: {self.ending or self.state}"

    @property
    def asked_at(self) -> str:
        """When the copy was asked for."""
        at = self.request.at if self.request is not None else None
        return at.isoformat(" ", "seconds") if at else "an unknown time"

    @property
    def state(self) -> str:
        """What is wanted of the copy."""
        if self.request is None:
            return ""
        if self.request.wanted == COPY and not (self.checkpoint is not None and self.checkpoint.copies):
            return "asked for, and no run has told of it yet"
        return _WANTED.get(self.request.wanted, self.request.wanted)


_Answer = CopyRequest | str | None
"""A request to store, None to remove the one that stands, or why there is nothing to do."""


class CopyAsking:
    """Leaves requests for the loads of tables, which do the work.

    :param variables: ``airflow.sdk.Variable``
    """

    def __init__(self, variables: Variables) -> None:
        self._store, self._requests = CheckpointStore(variables), CopyRequests(variables)

    def standing(self, identity: Identity) -> Standing:
        """What is stored of a table's copy.

        :raises CheckpointError: if it cannot be read
        """
        return Standing(identity, self._store.load(identity), self._requests.load(identity))

    def ask(
        self,
        action: str,
        identities: Iterable[Identity],
        name: Callable[[Identity], str] = lambda _: secrets.token_hex(6),
        where: str = "",
    ) -> list[Identity]:
        """Leave a request for each table, where there is something to do; what has a request.

        :param action: one of ``ACTIONS``
        :param name: the id of the copy of a table
        :param where: of ``START``: conditions of the rows that are to be compared, as ``CopyRequest.where``
        :raises CopyAskedError: if there is nothing to do for any of them; for ``START`` if another request stands in
            the way of one: then none is stored
        :raises CheckpointError: if what is stored cannot be read
        """
        standing = {each: self.standing(each) for each in identities}
        answers = {each: _ANSWERS[action](found, name(each)) for each, found in standing.items()}
        refused = {each: why for each, why in answers.items() if isinstance(why, str)}
        # all of them or none begin: one that is half done is nothing to repeat
        if refused and (action == START or len(refused) == len(answers)):
            raise CopyAskedError("; ".join(f"{each.table}: {why}" for each, why in refused.items()))
        for each, answer in answers.items():
            if isinstance(answer, str):
                continue
            if answer is None:
                self._requests.delete(each)
            else:
                self._requests.save(replace(answer, where=where) if action == START else answer)
            if action == START:
                # a load may have moved it since
                self._forgive(self._store.load(each), mends=not where)
        return [each for each in answers if each not in refused]

    def ask_once(self, identities: Iterable[Identity], name: Callable[[Identity], str], where: str = "") -> None:
        """Ask for copies that may have been asked for by an earlier try, under the same ids.

        :param where: conditions of the rows that are to be compared, as ``CopyRequest.where``
        :raises CopyAskedError: if another request stands in the way of one: then none is stored
        """
        left = []
        for each in identities:
            found = self.standing(each)
            if (found.request is None or found.request.id != name(each)) and found.ending_of(name(each)) is None:
                left.append(each)
        if left:
            self.ask(START, left, name, where)

    def _forgive(self, checkpoint: Checkpoint | None, *, mends: bool) -> None:
        """Let what failed for good be tried again: a copy may be what it lacks.

        :param mends: it is one of all rows: what that mends is tried for as long as one is asked for
        """
        if checkpoint is None:
            return
        failures = {shape: sink.failed for shape, sink in checkpoint.sinks.items() if sink.failed is not None}
        if failed := [shape for shape, failure in failures.items() if not (mends and failure.copy_mends)]:
            self._store.overwrite(checkpoint.failing(failed, None))


def _start(found: Standing, id_: str) -> _Answer:
    request = found.request
    if (
        request is not None
        and not request.has_ended(found.checkpoint)
        and (request.of_loaded or request.wanted == STOP)
    ):
        return f"copy {request.id} stands in the way: it was asked for at {found.asked_at}, and is {found.state}"
    return CopyRequest(found.identity, id_, COPY, True, datetime.datetime.now(datetime.UTC))


def _changed(wanted: str) -> Callable[[Standing, str], _Answer]:
    def change(found: Standing, _: str) -> _Answer:
        request, checkpoint, now = found.request, found.checkpoint, datetime.datetime.now(datetime.UTC)
        if request is not None and not request.has_ended(checkpoint):
            if request.wanted == STOP:
                return f"copy {request.id} is to be stopped by the next run"
            # how long it is paused counts from here
            return replace(request, wanted=wanted, at=now if wanted == PAUSE else request.at)
        if checkpoint is not None and checkpoint.copies:
            return CopyRequest(found.identity, checkpoint.copies[0].id, wanted, False, now)
        return "no copy is under way, and none is asked for"

    return change


def _resume(found: Standing, _: str) -> _Answer:
    request = found.request
    if request is None or not request.is_paused:
        return "no copy is paused"
    if found.ending is not None:
        return f"copy {request.id} has ended ({found.ending}), and `mssql-cdc copy start` begins another one"
    return replace(request, wanted=COPY) if request.of_loaded else None


_ANSWERS: Mapping[str, Callable[[Standing, str], _Answer]] = {
    START: _start,
    PAUSE: _changed(PAUSE),
    RESUME: _resume,
    STOP: _changed(STOP),
}
