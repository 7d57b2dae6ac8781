"""What task queues need of a broker, over stompman: a ``Sender``, whose tasks are on the broker's disk when ``send``
returns, and a ``Consumer``, whose tasks leave the broker when they are acknowledged.
"""

from __future__ import annotations

from typing import Final

from artemis_py_tasks.connection import Options
from artemis_py_tasks.consumer import Consumer, Delivery
from artemis_py_tasks.errors import RefusedError, SendError, TasksError, UnconfirmedError
from artemis_py_tasks.sender import Sender

VERSION: Final = "0.1.0"

__all__ = [
    "VERSION",
    "Consumer",
    "Delivery",
    "Options",
    "RefusedError",
    "SendError",
    "Sender",
    "TasksError",
    "UnconfirmedError",
]
