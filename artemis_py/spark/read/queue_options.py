"""The options of a stream that consumes a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artemis_py.errors import PipelineError, SelectorError
from artemis_py.selector import compile_selector
from artemis_py.spark.acceptors import Endpoint, endpoints_of

MEANINGS: Final = {
    "queue": "a queue, to consume it: its name, or address::queue",
    "stompUrl": "STOMP acceptors of the same broker, tried in turn: tcp://host:61613; stomps://host:61617 with TLS",
    "selector": "a condition on the messages of the queue, as in SUBSCRIBE",
}
MESSAGES_MAX: Final = 10_000
"""How many messages are in one batch, unless ``maxMessagesPerTrigger`` says something else."""
_REASONS: Final = {
    "journal": "the messages are acknowledged at a running broker: give url and stompUrl",
    "path": "the messages are acknowledged at a running broker: give url and stompUrl",
    "broker": "the broker at url says its name",
    "subscribe": "the queue decides which messages come; selector chooses among them",
    "subscribePattern": "the queue decides which messages come; selector chooses among them",
    "startingOffsets": "a new query begins with what is on the queue",
    "startingTimestamp": "a new query begins with what is on the queue",
    "endingOffsets": "a new query begins with what is on the queue",
    "endingTimestamp": "a new query begins with what is on the queue",
    "maxOffsetsPerTrigger": "limit a batch with maxMessagesPerTrigger or maxBytesPerTrigger",
    "minOffsetsPerTrigger": "a message waits on the queue, where others may take it, and not in the query",
    "minMessagesPerTrigger": "a message waits on the queue, where others may take it, and not in the query",
    "maxTriggerDelay": "a message waits on the queue, where others may take it, and not in the query",
    "skipUnavailableBrokers": "a queue is on one broker",
    "keepRemovedBrokers": "a queue is on one broker",
    "cursor": "the queue itself remembers what was not processed",
    "cursorTtlSeconds": "the queue itself remembers what was not processed",
}
"""Options of the other streams that have no meaning here, and why."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The queue of a stream."""

    name: str
    endpoints: tuple[Endpoint, ...]
    selector: str | None

    @property
    def destination(self) -> str:
        """The queue by its full name, whatever prefixes the acceptor has."""
        return self.name if "::" in self.name else f"::{self.name}"


def queue_options(texts: Mapping[str, str]) -> QueueOptions | None:
    """What the options say about a queue; None: the stream reads the log. Raises PipelineError."""
    name = texts.get("queue")
    if name is None:
        for option in ("stompUrl", "selector"):
            if option in texts:
                raise PipelineError(f"option {option} is for streams that consume a queue: give option queue, too")
        return None
    if not name.rpartition("::")[2]:
        raise PipelineError(f"option queue is {name!r}; allowed: {MEANINGS['queue']}")
    for option, reason in _REASONS.items():
        if option in texts:
            raise PipelineError(f"option {option} has no meaning with option queue: {reason}")
    if texts.get("table", "messages").lower() != "messages":
        raise PipelineError("option table must be messages with option queue: a queue has messages")
    if "," in texts.get("url", ""):
        raise PipelineError("option url must name one broker with option queue: a queue is on one broker")
    endpoints = endpoints_of(texts.get("stompUrl", ""), "stompUrl", MEANINGS["stompUrl"])
    if not endpoints:
        raise PipelineError(f"option queue needs option stompUrl: {MEANINGS['stompUrl']}")
    return QueueOptions(name, endpoints, _selector(texts))


def _selector(texts: Mapping[str, str]) -> str | None:
    selector = texts.get("selector")
    if selector is None:
        return None
    try:
        compile_selector(selector)
    except SelectorError as error:
        raise PipelineError(f"option selector is {selector!r}: {error}") from None
    return selector
