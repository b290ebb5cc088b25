"""Reads that SQL Server has ended through no fault of theirs, and that are done again: they have changed nothing.

A reader by locks can be a deadlock's victim beside the capture or the cleanup of change tables, and beside any writer
of a table that is copied (docs: error 1205, rerun the transaction). One under SNAPSHOT meets DDL of the time since its
moment, which has no versions (docs: error 3961); a new statement has a new moment.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

log = logging.getLogger(__name__)

VICTIM = r"deadlocked on .* deadlock victim"
DDL_MEANWHILE = r"object accessed by the statement has been modified by a DDL statement"
"""What messages hold; the driver hands on no number, so that in other languages of the server such a read fails."""

_ENDED = re.compile(f"{VICTIM}|{DDL_MEANWHILE}", re.DOTALL)
_MOST_READS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
"""Seconds, doubled from try to try: who reads again at once meets the same writers in the same places."""

Result = TypeVar("Result")


def read_again(read: Callable[[int], Result]) -> Result:
    """Read, and again as long as the server ends it so; the tenth one is raised.

    :param read: gets the number of the try, from 0
    """
    for number in range(_MOST_READS - 1):
        try:
            return read(number)
        except Exception as error:
            if not _ENDED.search(str(error)):
                raise
            log.info("a read was ended by a deadlock or by DDL of meanwhile, and is done again")
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number)))
    return read(_MOST_READS - 1)
