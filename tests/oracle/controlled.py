"""Runs our broker as ``artemis-py run`` does, and carries out orders from standard input.

The orders are operations of the core that no protocol offers yet: ``pause QUEUE``, ``resume QUEUE`` and
``resize QUEUE N``, one a line, each answered by ``done`` or by what is wrong.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

from artemis_py.errors import ArtemisError
from artemis_py.server import lifecycle
from artemis_py.server.server import Server


class ControlledServer(Server):
    """The server of ``run`` with an ear at standard input."""

    def __init__(self, config: Any, loop: asyncio.AbstractEventLoop, *rest: Any, **named: Any) -> None:
        super().__init__(config, loop, *rest, **named)
        threading.Thread(target=self._listen_to_orders, args=(loop,), daemon=True).start()

    def _listen_to_orders(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(self._carry_out, line.split())

    def _carry_out(self, words: list[str]) -> None:
        operation, queue_name, *rest = words
        try:
            if operation == "resize":
                self.broker.queue_operations.set_ring_size(queue_name, int(rest[0]))
            elif operation == "pause":
                self.broker.queue_operations.pause(queue_name)
            else:
                self.broker.queue_operations.resume(queue_name)
        except ArtemisError as error:
            print(f"refused: {error}", flush=True)
            return
        self.turns.schedule()
        print("done", flush=True)


if __name__ == "__main__":
    setattr(lifecycle, "Server", ControlledServer)  # noqa: B010 - it is not exported
    sys.exit(lifecycle.run(Path(sys.argv[1]), []))
