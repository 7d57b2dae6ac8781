"""A batch: messages that go into an address together, with their route and what selectors say of them."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.address import Address, Plan
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Sender
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import TaskLine
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, LargeBody, Message
from artemis_py.selector import Program, Selector

# ---- filter results --------------------------------------------------------------------------------------------------
#
# What selectors say about one message. Each different selector is asked once, however many queues, diverts and
# consumers share it.


@final
class FilterResults:
    """What selectors say of one message. They may be asked for ahead, some in each turn."""

    __slots__ = ("_asked", "_known", "_programs", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self._known: dict[Program, bool] = {}
        self._programs: list[Program] | None = None
        self._asked = 0

    def of(self, selector: Selector | None) -> bool:
        """Does the selector, if there is one, want the message?"""
        return selector is None or self._ask(selector.program)

    def _ask(self, program: Program) -> bool:
        known = self._known.get(program)
        if known is None:
            known = self._known[program] = program.condition(self.message.lookup) is True
        return known

    def ask_ahead(self, programs: list[Program], budget: Budget, stop_at: int) -> bool:
        """Ask all programs of a plan, including those that were added meanwhile, until the budget is down to
        ``stop_at`` units; at least one. Returns True when all are asked.
        """
        if programs is not self._programs:
            self._programs = programs
            self._asked = 0
        size_bytes = self.message.head.size_bytes
        while self._asked < len(programs):
            program = programs[self._asked]
            self._asked += 1
            if program in self._known:
                continue
            self._ask(program)
            budget.spend(program.units + (program.units_per_kb * size_bytes >> 10))
            if budget.left <= stop_at:
                break
        return self._asked >= len(programs)


# ---- diverted --------------------------------------------------------------------------------------------------------
#
# A message that exclusive diverts took: it is only where its copies come to.


@final
class Diverted:
    """A message that exclusive diverts took from ``address``. When no copy has come to a queue, it counts as unrouted
    there. ``parent``: of the message of which this one is a copy.
    """

    __slots__ = ("_address", "_copies_count", "_is_there", "_parent", "is_passed_on")

    def __init__(self, address: Address, parent: Diverted | None) -> None:
        self._address = address
        self._parent = parent
        self._copies_count = 1
        """How many copies are on their way, and one more as long as they are being made."""
        self._is_there = False
        self.is_passed_on = False
        """Has another exclusive divert taken the copy that is being published?"""
        if parent is not None:
            parent.is_passed_on = True
            parent.begin_copy()

    def begin_copy(self) -> None:
        """A copy is on its way."""
        self._copies_count += 1

    def end_copy(self, *, is_there: bool) -> None:
        """A copy was published, or cannot be. ``is_there``: a queue has it, or may have had it."""
        self._is_there |= is_there
        self._copies_count -= 1
        if self._copies_count:
            return
        if not self._is_there:
            self._address.routed_message_count -= 1
            self._address.unrouted_message_count += 1
        if self._parent is not None:
            self._parent.end_copy(is_there=self._is_there)


# ---- batch -----------------------------------------------------------------------------------------------------------


@final
class Batch:
    """Messages on their way into one address together.

    ``size_bytes`` is the sum of their encoded sizes. ``plain`` promises that none of them is persistent, expires or
    carries a duplicate id, ``distinct`` only the last of these. ``due_ms`` above 0 schedules them. ``plan`` is that
    of the route's address, once somebody has looked it up. ``sender`` is the client that sends them; None: the broker
    does.
    """

    __slots__ = (
        "distinct", "diverted", "due_ms", "filter_results", "hops", "in_pages", "limited", "memory_bytes", "messages",
        "now_ms", "paged", "passed", "plain", "plan", "refused_by", "refused_bytes", "route", "sender", "size_bytes",
        "waits_for",
    )  # fmt: skip

    def __init__(
        self,
        route: Route,
        messages: list[Message],
        size_bytes: int,
        now_ms: int,
        plain: bool,
        due_ms: int = 0,
        *,
        distinct: bool = False,
        plan: Plan | None = None,
        sender: Sender | None = None,
    ) -> None:
        self.route = route
        self.messages = messages
        self.size_bytes = size_bytes
        self.now_ms = now_ms
        self.plain = plain
        self.due_ms = due_ms
        self.distinct = distinct
        self.plan = plan
        self.sender = sender
        self.hops = 0
        """How often they were forwarded."""
        self.passed: tuple[str, ...] = ()
        """The diverts that made this copy, one behind the other."""
        self.diverted: Diverted | None = None
        """The message that an exclusive divert took, if this is a copy of one."""
        self.paged = False
        self.refused_by: Queue | None = None
        """The queue that took no more, where not all messages were taken because of a queue and not of the address."""
        self.refused_bytes = 0
        """The encoded size of the message that it did not take."""
        self.waits_for: TaskLine | None = None
        """What must be on its queues before anything of the batch can be taken, where not all messages were taken
        because of that.
        """
        self.limited = False
        """May the depth limit of a queue that the batch goes to keep it back?"""
        self.filter_results: dict[Message, FilterResults] | None = None
        """What selectors say of the messages, where they were asked before."""
        self.in_pages: list[Message] | None = None
        """Those that are in pages by now."""
        # Large bodies come alone: several messages have none. Those in files take no memory.
        if len(messages) == 1 and isinstance(messages[0].body, LargeBody):
            size_bytes = messages[0].head.size_bytes
        self.memory_bytes = size_bytes + MESSAGE_OVERHEAD_BYTES * len(messages)
        """What the messages add to their address' size."""

    def part(self, messages: list[Message]) -> Batch:
        """A batch of some of the messages, to which applies what applies to all."""
        part = Batch(
            self.route,
            messages,
            sum([message.size_bytes for message in messages]),
            self.now_ms,
            self.plain,
            self.due_ms,
            distinct=self.distinct,
            plan=self.plan,
            sender=self.sender,
        )
        part.hops, part.passed, part.diverted = self.hops, self.passed, self.diverted
        part.filter_results = self.filter_results
        part.paged = self.paged
        part.limited = self.limited
        return part

    def filter_results_of(self, message: Message) -> FilterResults:
        """What selectors say of one of the messages, as far as it is known."""
        known = None if self.filter_results is None else self.filter_results.get(message)
        return FilterResults(message) if known is None else known

    def narrow(self, messages: list[Message]) -> None:
        """Go on with only some of the messages."""
        if len(messages) != len(self.messages):
            self.messages = messages
            self.size_bytes = sum(message.size_bytes for message in messages)
            # Of several messages none has a large body; otherwise none is left.
            self.memory_bytes = self.size_bytes + MESSAGE_OVERHEAD_BYTES * len(messages)
