"""What a scenario can do and expect. Each step is data and knows how it is played."""

from __future__ import annotations

from tests.oracle.steps.base import Either, Step, perform, play
from tests.oracle.steps.connections import Beat, Closed, Connect, Disconnect, Drop, HalfClose, Open, StaysOpen
from tests.oracle.steps.counts import AddressExists, Counts, Exists, Routed
from tests.oracle.steps.frames import (
    ONE_BY_ONE,
    Answer,
    Raw,
    Refused,
    Request,
    abort,
    ack,
    anycast,
    begin,
    commit,
    nack,
    send,
    subscribe,
    unnamed,
    unsubscribe,
)
from tests.oracle.steps.messages import Messages, Nothing, Silent, messages
from tests.oracle.steps.operations import ManySenders, PassTime, Pause, Resize, Resume

__all__ = [
    "ONE_BY_ONE",
    "AddressExists",
    "Answer",
    "Beat",
    "Closed",
    "Connect",
    "Counts",
    "Disconnect",
    "Drop",
    "Either",
    "Exists",
    "HalfClose",
    "ManySenders",
    "Messages",
    "Nothing",
    "Open",
    "PassTime",
    "Pause",
    "Raw",
    "Refused",
    "Request",
    "Resize",
    "Resume",
    "Routed",
    "Silent",
    "StaysOpen",
    "Step",
    "abort",
    "ack",
    "anycast",
    "begin",
    "commit",
    "messages",
    "nack",
    "perform",
    "play",
    "send",
    "subscribe",
    "unnamed",
    "unsubscribe",
]
