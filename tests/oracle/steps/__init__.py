"""What a scenario can do and expect. Each step is data and knows how it is played."""

from __future__ import annotations

from tests.oracle.steps.base import Either, Step, play
from tests.oracle.steps.connections import Beat, Closed, Connect, Disconnect, Drop, HalfClose, Open, StaysOpen
from tests.oracle.steps.counts import AddressExists, Counts, Exists, Routed
from tests.oracle.steps.frames import (
    Answer,
    Plain,
    Raw,
    Refused,
    Request,
    Send,
    Settle,
    Silent,
    Subscribe,
    abort,
    ack,
    anycast,
    begin,
    commit,
    nack,
    send,
    unnamed,
    unsubscribe,
)
from tests.oracle.steps.messages import AnyOrder, Messages, Nothing, messages
from tests.oracle.steps.world import ManySenders, PassTime, Pause, Resize

__all__ = [
    "AddressExists",
    "Answer",
    "AnyOrder",
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
    "Plain",
    "Raw",
    "Refused",
    "Request",
    "Resize",
    "Routed",
    "Send",
    "Settle",
    "Silent",
    "StaysOpen",
    "Step",
    "Subscribe",
    "abort",
    "ack",
    "anycast",
    "begin",
    "commit",
    "messages",
    "nack",
    "play",
    "send",
    "unnamed",
    "unsubscribe",
]
