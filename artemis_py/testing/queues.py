"""A queue as a test sees it: its counts, its messages, and waits for what it should become."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from artemis_py.testing.state import QueueState, StoredMessage, messages_of, state_of, why_not_delivered

if TYPE_CHECKING:
    from artemis_py.testing.engine import Engine


@final
class Answer:
    """True or false, and why, for the message of a failed ``assert``."""

    def __init__(self, *, holds: bool, text: str) -> None:
        self._holds = holds
        self._text = text

    def __bool__(self) -> bool:
        return self._holds

    def __repr__(self) -> str:
        return f"<{self._text}>"


@final
class QueueView:
    """The queue of one name. It need not exist yet: then it has 0 of everything, and waits go on until it does.

    All that waits returns as soon as the broker is in the wanted state; the timeouts, in s, are for tests that fail.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine

    @property
    def state(self) -> QueueState:
        """All numbers of this moment. Raises BrokerDownError."""
        return self._engine.look(lambda server: state_of(server.broker.queues.get(self.name)))

    @property
    def count(self) -> int:
        """Messages that are ready, in delivery, scheduled or in pages."""
        return self.state.count

    @property
    def consumers(self) -> int:
        """Attached consumers, without browsers."""
        return self.state.consumers

    @property
    def acknowledged(self) -> int:
        """How many messages consumers have acknowledged."""
        return self.state.acknowledged

    @property
    def messages(self) -> list[StoredMessage]:
        """The messages in memory: ready ones in their order, then those in delivery, then scheduled ones. Messages in
        pages are only counted.
        """

        def look() -> list[StoredMessage]:
            server = self._engine.server
            queue = server.broker.queues.get(self.name)
            return [] if queue is None else messages_of(queue, server.store)

        return self._engine.thread.call(look)

    @property
    def empty(self) -> Answer:
        """Is there no message on the queue? Waits up to 5 s for it, so that what a consumer has just received can be
        acknowledged.
        """
        return self._becomes(lambda state: not state.count, "is empty", "is not empty", "empty")

    def _becomes(self, condition: Callable[[QueueState], bool], yes: str, no: str, call: str) -> Answer:
        from artemis_py.testing.errors import NotReachedError

        try:
            self._wait(condition, lambda _: no, self._engine.timeout_s, call)
        except NotReachedError:
            return Answer(holds=False, text=f"{self.name} {no}: {self.state}; {'; '.join(self._why())}")
        return Answer(holds=True, text=f"{self.name} {yes}")

    # ---- waiting ---------------------------------------------------------------------------------

    def wait(
        self, condition: Callable[[QueueState], bool] | None = None, *, timeout: float | None = None, **wanted: int
    ) -> QueueState:
        """Wait until the numbers of the queue are as wanted: ``wait(count=3)``, ``wait(consumers=1, delivering=0)``, or
        ``wait(lambda state: state.count > 3)``. Returns the state that was reached.

        Raises NotReachedError after the timeout (s; 5 by default) with what is different, and why nothing is delivered;
        TypeError for an unknown name; WouldBlockError on an event loop.
        """
        QueueState().differences(wanted)
        reached: list[QueueState] = []

        def holds(state: QueueState) -> bool:
            if state.differences(wanted) or not (condition is None or condition(state)):
                return False
            reached.append(state)
            return True

        def different(state: QueueState) -> str:
            return ", ".join(state.differences(wanted)) or "the condition does not hold"

        self._wait(holds, different, self._engine.timeout_s if timeout is None else timeout, "wait")
        return reached[0]

    def assert_acknowledged(self, count: int, *, timeout: float | None = None) -> None:
        """Wait until consumers have acknowledged ``count`` messages. Raises NotReachedError when they have not, or when
        there were more.
        """
        seconds = self._engine.timeout_s if timeout is None else timeout
        self._wait(lambda state: state.acknowledged >= count, _too_few(count), seconds, "assert_acknowledged")
        self._wait(lambda state: state.acknowledged == count, _too_few(count), 0, "assert_acknowledged")

    def assert_empty(self, *, timeout: float | None = None) -> None:
        """Wait until there is no message on the queue. Raises NotReachedError with the whole story."""
        seconds = self._engine.timeout_s if timeout is None else timeout
        self._wait(lambda state: not state.count, lambda _: "is not empty", seconds, "assert_empty")

    def _wait(
        self,
        condition: Callable[[QueueState], bool],
        different: Callable[[QueueState], str],
        timeout_s: float,
        call: str,
    ) -> None:
        engine = self._engine

        def holds() -> bool:
            server = engine.server
            return condition(state_of(server.broker.queues.get(self.name)))

        def explain() -> str:
            server = engine.server
            state = state_of(server.broker.queues.get(self.name))
            waited = f" after {timeout_s:g} s" if timeout_s else ""
            lines = [f"queue {self.name}: {different(state)}{waited}", f"  it {_having(state)}"]
            lines += [f"  {line}" for line in why_not_delivered(server, self.name)]
            return "\n".join(lines)

        engine.waits.wait(holds, explain, timeout_s, f"queue({self.name!r}).{call}")

    # ---- why, and what a test may do -------------------------------------------------------------

    def why_not_delivered(self) -> str:
        """Why the queue delivers nothing more, a line for each reason; empty if it has nothing to deliver."""
        return "\n".join(self._why())

    def _why(self) -> list[str]:
        return self._engine.look(lambda server: why_not_delivered(server, self.name))

    def pause(self) -> None:
        """Deliver nothing until ``resume``. Raises NotFoundError."""
        self._engine.change(lambda server: server.broker.queue_operations.pause(self.name))

    def resume(self) -> None:
        """Deliver again. Raises NotFoundError."""
        self._engine.change(lambda server: server.broker.queue_operations.resume(self.name))

    def __repr__(self) -> str:
        if not self._engine.is_running:
            return f"<queue {self.name}>"
        return f"<queue {self.name}: {self.state}>"


def _having(state: QueueState) -> str:
    return f"has {state}" if state.exists else str(state)


def _too_few(count: int) -> Callable[[QueueState], str]:
    return lambda state: f"acknowledged is {state.acknowledged}, not {count}"
