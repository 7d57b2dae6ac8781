"""``stomp://`` for kombu and Celery: the transport of this package, registered by its import.

Celery imports it by itself (see ``registration``); a program that uses kombu alone writes ``import artemis_py_kombu``.
"""

from __future__ import annotations

from typing import Final

from kombu.transport import TRANSPORT_ALIASES

VERSION: Final = "0.1.0"

TRANSPORT_ALIASES["stomp"] = "artemis_py_kombu.transport:Transport"
TRANSPORT_ALIASES["stomp+ssl"] = "artemis_py_kombu.transport:TlsTransport"  # the second URL of a list comes unsplit
