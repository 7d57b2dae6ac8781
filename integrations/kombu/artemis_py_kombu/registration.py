"""How a Celery application finds ``stomp://`` without an import of its own.

kombu has no entry point for transports. The one that it reads in every process, before Celery connects, is that of
serializers: so this package names one there, and its import registers the transport.
"""

from __future__ import annotations

from typing import Final, NoReturn

import artemis_py_kombu


def _refuse(_: object) -> NoReturn:
    raise TypeError(f"{artemis_py_kombu.__name__} is a transport (stomp://…), not a serializer")


NO_SERIALIZER: Final = (_refuse, _refuse, "application/x-artemis-py-kombu", "utf-8")
"""What kombu.serialization.register() is called with."""
