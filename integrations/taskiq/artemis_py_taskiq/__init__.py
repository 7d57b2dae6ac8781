"""A broker of taskiq whose tasks wait in a STOMP broker: ``StompBroker``."""

from __future__ import annotations

from typing import Final

from artemis_py_taskiq.broker import StompBroker

VERSION: Final = "0.1.0"

__all__ = ["VERSION", "StompBroker"]
