"""What clients wait for, in the words of docs/why.md."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.fullness import QUEUE_DEPTH, limits_reached
from artemis_py.core.addresses.spreading import Spread
from artemis_py.core.queue.queue import Queue
from artemis_py.management.why.vitals import Awaited
from artemis_py.stomp.service import Awaited as Thing
from artemis_py.stomp.session.entry import Entry
from artemis_py.stomp.session.errand import Errand

SPREADING: Final = "spreading"
WORK: Final = "work"
LOGIN: Final = "login"
DISK: Final = "disk-slow"
NOT_BLOCKED: Final = "not-blocked"


def in_words(thing: Thing) -> Awaited:
    """What is awaited: an address or queue as it is, anything else as a word."""
    if isinstance(thing, Address | Queue):
        return thing
    if isinstance(thing, Spread):
        return SPREADING
    if isinstance(thing, Errand):
        return WORK
    return LOGIN if isinstance(thing, Entry) else DISK


def word_of(thing: Thing) -> str:
    """The word for why a client waits: of an address, the limit that it has reached."""
    found = in_words(thing)
    if isinstance(found, Address):
        return next(iter(limits_reached(found)), NOT_BLOCKED)
    return QUEUE_DEPTH if isinstance(found, Queue) else found
