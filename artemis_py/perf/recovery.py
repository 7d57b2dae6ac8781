"""Scenario ``recovery``: how fast a broker restarts with a journal full of messages."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import GROUP, fill
from artemis_py.perf.frames import body_of, marker_of
from artemis_py.perf.link import Link
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.pump import Pump, Receiver
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.perf.startup import running

MESSAGES: Final = 300_000


class Recovery(Scenario):
    """Starts the broker, fills a queue with durable messages, stops the broker and starts it again.

    The time of the first start, with an empty journal, is subtracted.
    """

    id = "recovery"
    title = "start with a full journal"
    headline = "records_per_second"
    needs_broker = False

    def run(self, run: Run) -> dict[str, float]:
        """Recovered messages per second. Raises PerfError if a message is missing afterwards."""
        if not run.options.start_command:
            raise PerfError("scenario recovery needs --start-command, the command that starts the broker")
        command = shlex.split(run.options.start_command)
        count = -(-(run.options.messages or MESSAGES) // GROUP) * GROUP
        body = body_of(run.options.size or 100)
        queue = run.queue()
        limit_s = run.options.limit_s
        with running(command, run.target, limit_s, run.progress.show) as empty:
            fill(run, queue, body, count)
        with running(command, run.target, limit_s, run.progress.show) as full:
            metrics = {"messages": float(count), "start_ms": full.start_s * 1000}
            metrics |= replace(run, process=ProcessTree(full.pid)).resident_mb()
            self._count(run, queue, body, count)
        metrics["records_per_second"] = count / max(full.start_s - empty.start_s, 0.001)
        return metrics

    def _count(self, run: Run, queue: str, body: bytes, count: int) -> None:
        with Link(run.target) as link:
            link.subscribe(queue, confirm=False)
            receiver = Receiver(link, marker_of(body), count)
            Pump([], [receiver], frame_bytes=1, limit_s=run.options.limit_s, progress=run.progress).run()
            surplus = link.goodbye()
        if surplus:
            raise PerfError(f"{surplus:,} more messages came back than were sent")
