"""Tells lives from a log, however it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artemis_py.tracing.lives import Lives, Moment
from artemis_py.tracing.source import LogSource


def follow(source: LogSource, lives: Lives) -> Iterator[Sequence[Moment]]:
    """What the log tells, record by record, so that its reader can stop and go on at each of them; most tell nothing.
    Raises ArtemisError.
    """
    source.may_be_among = lives.may_be_among
    for fields in source.begin(0, 0).queues:
        if fields.get("name"):
            lives.know_queue(fields)
    for part in source.parts():
        for fields in part.queues:
            if fields.get("name"):
                lives.know_queue(fields)
        if part.begins_segment:
            lives.begin_segment()
        yield ()
        for event in part.events_about(lives.wants):
            yield () if event is None else lives.take(event)
