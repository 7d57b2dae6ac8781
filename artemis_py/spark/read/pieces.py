"""Reads pieces of the log for tasks, and checks that they are the planned bytes, complete and undamaged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.walk import Piece, Walk, walk
from artemis_py.spark.log.log import GoneError, Log
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Range
from artemis_py.storage.format import records

if TYPE_CHECKING:
    from artemis_py.storage.format.scan import Damage

_logger = logging.getLogger(__name__)


def piece(one: Range, log: Log, options: ReadOptions) -> Walk | None:
    """The records of a part of a segment. Raises PipelineError for removed or damaged data, unless losses are allowed;
    then the result may be None.
    """
    try:
        data = log.read(one.segment, one.begin, one.end, one.name)
    except GoneError as error:
        if options.fails_on_loss:
            raise PipelineError(f"{error}; {WITH_LOSS}") from None
        _logger.warning("%s; its rows are skipped", error)
        return None
    damages: list[Damage] = []
    found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
    check_planned(one, found)
    check_whole(one, data, damages, options)
    return found


WITH_LOSS: Final = "skip it with failOnDataLoss=false"


def check_planned(one: Range, found: Walk) -> None:
    """Check that these are the planned bytes: a piece begins with the batch named by the index. Raises PipelineError if
    another log is now in this place.
    """
    if not len(found.places) or found.places[0]:  # nothing, or damage: told elsewhere
        return
    if found.kinds[0] != records.BATCH or found.times_ms[0] != one.time_ms:
        raise PipelineError(
            f"segment {one.segment} is not the one that was planned: the log was replaced by another one or an older "
            "copy while it was read. Read it again"
        )


def check_whole(one: Range, data: bytes, damages: list[Damage], options: ReadOptions) -> None:
    """Check that all bytes are there and undamaged. Raises PipelineError, or logs it if losses are allowed."""
    problems = [str(damage) for damage in damages]
    if len(data) < one.end - one.begin:
        problems.append(f"segment {one.segment} ends at byte {one.begin + len(data)}, before {one.end}")
    for problem in problems:
        if options.fails_on_loss:
            raise PipelineError(f"{problem}; {WITH_LOSS}")
        _logger.warning("%s; the unreadable part is skipped", problem)
