"""What a copy and the events beside it come to."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """What a copy and the events since its low come to.

    :param stay: the copied rows that have no event: as they are, they were at the low; where there are no before
        images, all rows that are there at the end
    :param was: of the others, the images of before their first event, with ``_unknown``; None where there are none
    :param events: since the low, with the LOBs that are known; None where there are none
    :param left: of the keys that have events, the last row of each that is there
    :param gone: the last row of each that is not
    """

    stay: DataFrame
    was: DataFrame | None = None
    events: DataFrame | None = None
    left: DataFrame | None = None
    gone: DataFrame | None = None
