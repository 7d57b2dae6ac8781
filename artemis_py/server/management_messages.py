"""Answers management messages: begins what they ask for, and sends the replies inside turns."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, final

from artemis_py.core.addresses.batch import Batch
from artemis_py.errors import ArtemisError, BrokerError
from artemis_py.management.artemis.beans import Beans
from artemis_py.management.artemis.java import JavaError
from artemis_py.management.artemis.management_messages import body_of, call_of
from artemis_py.management.artemis.operations import Call, CallSteps, Outcome
from artemis_py.management.operation import EDIT
from artemis_py.message import Head, encode_headers
from artemis_py.server import operational_log as audit
from artemis_py.server.http.requests import parse_json
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.stomp.management_requests import ManagementRequest, PendingRequest, ReplyTo

_INTERNAL: Final = "an internal error; see the broker's log"


@final
class ManagementMessages:
    """The ``Receiver`` of a broker. ``schedule`` has a turn run soon; ``complain`` hears of failures that are nobody's
    fault. With ``management-message-rbac`` an operation needs the permission that HTTP asks for, too.
    """

    def __init__(
        self, beans: Beans, calls: OperatorRequests, schedule: Callable[[], None], complain: Callable[[Exception], None]
    ) -> None:
        self._beans = beans
        self._calls = calls
        self._schedule = schedule
        self._complain = complain
        self._broker = beans.managed.broker
        self.answers: deque[tuple[PendingRequest, ManagementRequest]] = deque()
        """Replies to send."""

    def receive(self, request: ManagementRequest) -> PendingRequest:
        """Begin to carry out a request."""
        pending = PendingRequest()
        try:
            call = call_of(self._beans, request.headers, request.body, parse_json)
            self._check(call, request)
        except ArtemisError as error:
            self._refuse(pending, request, error, str(error))
            return pending
        work: asyncio.Future[Outcome] = self._calls.begin(_with_body(call), changes=call.right == EDIT)
        work.add_done_callback(partial(self._done, pending, request, call))
        return pending

    def _check(self, call: Call, request: ManagementRequest) -> None:
        config = self._broker.config
        if config.management_message_rbac and request.rights is not None:
            request.rights.demand(call.right, f"{config.management_rbac_prefix}.{call.permission}")

    def _done(
        self, pending: PendingRequest, request: ManagementRequest, call: Call, work: asyncio.Future[Outcome]
    ) -> None:
        failure = work.exception()
        if call.right == EDIT:
            outcome = work.result().outcome if failure is None else str(failure)
            audit.tell(call.id, call.arguments, request.user, request.peer, outcome)
        if failure is None:
            pending.reply = work.result().value
            self.answers.append((pending, request))
        elif isinstance(failure, BrokerError | JavaError):
            self._refuse(pending, request, failure, str(failure))
        else:
            if isinstance(failure, Exception):
                self._complain(failure)
            self._refuse(pending, request, failure, _INTERNAL)
        self._schedule()

    def _refuse(self, pending: PendingRequest, request: ManagementRequest, failure: BaseException, why: str) -> None:
        pending.failure = failure
        pending.why_failed = why
        pending.reply = json.dumps([why], ensure_ascii=False)
        self.answers.append((pending, request))

    def run(self, now_ms: int) -> None:
        """Send the replies that are ready; those who asked go on."""
        while self.answers:
            pending, request = self.answers.popleft()
            pending.done = True
            if request.reply_to is not None:
                self._reply(request, request.reply_to, pending, now_ms)

    def _reply(self, request: ManagementRequest, to: ReplyTo, pending: PendingRequest, now_ms: int) -> None:
        """Publish a reply. Where nobody reads, it is dropped: nothing is created for it."""
        broker = self._broker
        if to.address not in broker.addresses:
            return
        try:
            route = broker.resolver.route(to.address, to.queue, to.routing_type)
        except BrokerError:
            return
        headers = [
            ("destination", to.shown),
            ("priority", "4"),
            ("persistent", "false"),
            ("reply-to", to.shown),
            *pending.headers(),
        ]
        correlation = request.headers.get("correlation-id")
        if correlation is not None:
            headers.append(("correlation-id", correlation))
        head = Head(encode_headers(headers), to.address, routing_type=to.routing_type)
        message = broker.message(route, head, pending.reply.encode(), now_ms)
        broker.publisher.publish(
            Batch(route, [message], message.size_bytes, now_ms, plain=True, distinct=True), admitted=True
        )
        if broker.copy_maker.waiting:
            broker.copy_publisher.flush(now_ms)


def _with_body(call: Call) -> CallSteps:
    done = yield from call.begin()
    return Outcome((yield from body_of(done.value)), done.outcome)
