"""What goes wrong in a test, in words that say what to do."""

from __future__ import annotations

from artemis_py.errors import ArtemisError


class NotReachedError(AssertionError):
    """The broker did not reach the state that a test waited for; says how far it came, and why not further."""


class BrokerDownError(ArtemisError):
    """The broker does not run: it was not started, it crashed, or it has failed."""


class SendError(ArtemisError):
    """The broker did not take a message of the test: it refused it, or its sender would have to wait."""


class WouldBlockError(ArtemisError):
    """A call that waits was made on an event loop: the clients on that loop would stand still meanwhile."""
