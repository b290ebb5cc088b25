"""Reads that SQL Server chose as a deadlock's victim, and that are done again.

A reader by locks can be one beside the capture or the cleanup of change tables, and beside any writer of a table that
is copied. It has changed nothing, so that it may read again (docs: error 1205, rerun the transaction).
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
"""What the message holds; the driver hands on no number, so that in other languages of the server a victim fails."""

_VICTIM = re.compile(VICTIM, re.DOTALL)
_MOST_READS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
"""Seconds, doubled from try to try: who reads again at once meets the same writers in the same places."""

Result = TypeVar("Result")


def read_again(read: Callable[[int], Result]) -> Result:
    """Read, and again as long as the read is a deadlock's victim; the tenth one is raised.

    :param read: gets the number of the try, from 0
    """
    for number in range(_MOST_READS - 1):
        try:
            return read(number)
        except Exception as error:
            if not _VICTIM.search(str(error)):
                raise
            log.info("a read was chosen as the victim of a deadlock, and is done again")
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number)))
    return read(_MOST_READS - 1)
