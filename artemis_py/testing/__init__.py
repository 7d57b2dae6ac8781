"""A broker for other people's tests, in their own process: ``ArtemisBroker``, and fixtures for pytest (``plugin``).

Nothing is imported before it is asked for: pytest imports this package in every project that has it installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from artemis_py.testing.broker import ArtemisBroker
    from artemis_py.testing.errors import BrokerDownError, NotReachedError, SendError, WouldBlockError
    from artemis_py.testing.queues import QueueView
    from artemis_py.testing.state import QueueState, StoredMessage

__all__ = [
    "ArtemisBroker",
    "BrokerDownError",
    "NotReachedError",
    "QueueState",
    "QueueView",
    "SendError",
    "StoredMessage",
    "WouldBlockError",
]

_MODULES: Final = {
    "ArtemisBroker": "broker",
    "BrokerDownError": "errors",
    "NotReachedError": "errors",
    "QueueState": "state",
    "QueueView": "queues",
    "SendError": "errors",
    "StoredMessage": "state",
    "WouldBlockError": "errors",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
