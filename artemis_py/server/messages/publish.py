"""Publishes a message for a request, and says where it is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.full_policy import why_full
from artemis_py.core.publish_outcome import DIVERTED, NO_QUEUE, PublishOutcome
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import WAIT, AnySteps, Awaited, Step
from artemis_py.errors import (
    AddressFullError,
    ArtemisError,
    BadRequestError,
    BrokerError,
    NotAllowedError,
    NotFoundError,
    QueueFullError,
    StorageError,
)
from artemis_py.management.artemis.java import JavaError
from artemis_py.management.managed import Steps
from artemis_py.message import encode_headers
from artemis_py.security.identity import Credentials
from artemis_py.server.ports import Ports
from artemis_py.server.security import Security
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService, Traffic
from artemis_py.stomp.session.publish import BODY_BYTES_MAX, Publishing, request_management
from artemis_py.stomp.session.state import SessionState, UnfinishedFrame
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.wire.frames import AnyFrame, FrameError, LargeSend, Refused, Send
from artemis_py.uploads import BodyStore

# ---- errors ----------------------------------------------------------------------------------------------------------
#
# Why a message is not taken now.


class BusyError(BrokerError):
    """There is no room now; later there may be. ``is_full``: the address or a queue is full, and not the broker."""

    def __init__(self, text: str, *, is_full: bool) -> None:
        super().__init__(text)
        self.is_full = is_full


class TooLargeError(BrokerError):
    """The message, or its headers, are larger than the acceptor allows."""


class NotKeptError(BrokerError):
    """The message was published, and no queue has it. ``is_full``: a full address or ring has dropped it, so that later
    it may be kept; otherwise no queue takes such a message.
    """

    def __init__(self, text: str, *, is_full: bool) -> None:
        super().__init__(text)
        self.is_full = is_full


# ---- HTTP publisher --------------------------------------------------------------------------------------------------
#
# Publishes one message for a client of HTTP, as a SEND frame would: it is read, checked, routed and kept alike.


_PARTS_PER_STEP: Final = 2
"""Parts of at most 256 KiB, as a socket gives them, of which a checksum is made."""


_LATER: Final = "the message is nowhere; publish it again when there is room"
_NOWHERE: Final = "the message is nowhere"
_ADVICE: Final = {
    NO_QUEUE: (
        "the message is nowhere; create a queue first, subscribe, or publish with routing-type=ANYCAST, which creates"
        " one where the address-settings allow it"
    ),
    DIVERTED: "the message is nowhere; create a queue of address {0} that takes it, or change the divert",
}
_JAVA_STATUSES: Final[Mapping[int, type[BrokerError]]] = {
    400: BadRequestError,
    403: NotAllowedError,
    404: NotFoundError,
}


class ManagementReply(NamedTuple):
    """What a management message has brought: ``body`` is a JSON array with the result, or empty."""

    address: str
    body: str


@final
class HttpPublisher:
    """Publishes one message, in steps that run inside turns. ``now_ms`` returns the date of the turn."""

    def __init__(self, state: SessionState, now_ms: Callable[[], int]) -> None:
        self._state = state
        self._now_ms = now_ms
        self._outcome = PublishOutcome(state.broker.host.outcomes)
        self._publishing = Publishing(state, Transactions(state), self._outcome)

    def steps(self, headers: list[tuple[str, str]], parts: Sequence[bytes]) -> AnySteps:
        """Publish the message; the result says on how many queues it is. A request to the address of management is
        carried out, and its result is the result. Raises BrokerError in a step if the message is nowhere.
        """
        broker = self._state.broker
        if broker.holdings.is_full:
            broker.holdings.refused_count += 1
            raise BusyError(broker.holdings.why_full("a message"), is_full=False)
        frame, kept = yield from self._read(headers, parts)
        try:
            if frame.shape.address == self._state.service.asked_address:
                return (yield from self._ask(frame, kept))
            yield from self._send(frame, kept)
        except StorageError:
            raise
        except (AddressFullError, QueueFullError) as error:
            raise BusyError(str(error), is_full=True) from None
        except FrameError as error:
            raise BadRequestError(str(error)) from None
        except ArtemisError:
            raise
        except Exception:
            broker.step_broke_off(self._now_ms())
            raise
        finally:
            self._outcome.end()
        outcome = self._outcome
        if not outcome.is_kept and not outcome.is_duplicate:
            is_full = bool(outcome.full_because or outcome.dropped_count)
            advice = _LATER if is_full else _ADVICE.get(outcome.reason, _NOWHERE).format(outcome.lost_at)
            raise NotKeptError(f"{outcome.why_lost}; {advice}", is_full=is_full)
        return {
            "address": frame.shape.address,
            "routed": not outcome.unrouted_because,
            "duplicate": outcome.is_duplicate,
            "queues": outcome.queue_count - outcome.dropped_count,
            "dropped": outcome.dropped_count,
            "messageID": 0 if outcome.is_duplicate else outcome.message_id,
            "persistent": frame.shape.persistent and self._is_in_journal,
            "size": sum(map(len, parts)),
        }

    @property
    def _is_in_journal(self) -> bool:
        """Has the message, if it is persistent, come to where a restart finds it?"""
        outcome, config = self._outcome, self._state.broker.config
        return config.persistence_enabled and (outcome.durable_count > 0 or outcome.is_awaited)

    def _read(
        self, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> Generator[Step, None, tuple[Send, bytes]]:
        """The frame, and its body unless that goes to a file. Raises BrokerError."""
        parser = self._state.service.parser("1.2")
        frames: list[tuple[AnyFrame, bytes]] = []
        for place, part in enumerate((b"SEND\n" + encode_headers(headers), *parts, b"\0")):
            frames += parser.feed(part)
            disk = self._state.service.disk
            if disk is not None and parser.in_large_body:
                if isinstance(disk, BodyStore) and disk.is_full:
                    raise BusyError("the disk is full: max-disk-usage or min-disk-free", is_full=False)
                yield disk
            elif place % _PARTS_PER_STEP == _PARTS_PER_STEP - 1:
                yield None
        if parser.error is not None:
            kind = TooLargeError if parser.error.too_large else BadRequestError
            raise kind(str(parser.error))
        frame, kept = frames[0]
        if isinstance(frame, Refused):
            raise BadRequestError(frame.reason)
        if not isinstance(frame, Send):
            raise BadRequestError("this is not a message")
        return frame, kept

    def _ask(self, frame: Send, body: bytes) -> Generator[Step, None, ManagementReply]:
        """Have a management message carried out. Raises what it fails with."""
        if isinstance(frame, LargeSend):
            raise BadRequestError(f"a management message has a body of at most {BODY_BYTES_MAX} bytes")
        pending = request_management(self._state, frame, body)
        while not pending.done:
            yield WAIT
        failure = pending.failure
        if isinstance(failure, JavaError):
            raise _JAVA_STATUSES.get(failure.status, BrokerError)(str(failure))
        if failure is not None:
            raise failure
        return ManagementReply(frame.shape.address, pending.reply)

    def _send(self, frame: Send, body: bytes) -> Generator[Step, None, None]:
        """Publish the frame."""
        state, publishing = self._state, self._publishing
        while True:
            state.blocked_by = None
            now_ms = self._now_ms()
            if isinstance(frame, LargeSend):
                is_sent = publishing.send_large(frame, now_ms)
            else:
                is_sent = publishing.send(frame, body, now_ms)
            if is_sent:
                yield from self._finish()
                return
            awaited = self._awaited
            if isinstance(awaited, Address):
                raise BusyError(why_full(awaited), is_full=True)
            if isinstance(awaited, Queue):
                raise BusyError(awaited.flow.why_stopped, is_full=True)
            yield WAIT if awaited is None else awaited

    @property
    def _awaited(self) -> Awaited | None:
        """What the message, or its way to all of its queues, has to wait for."""
        return self._state.blocked_by

    def _finish(self) -> Generator[Step, None, None]:
        """Wait until the message is on all of its queues."""
        unfinished = self._awaited
        if isinstance(unfinished, UnfinishedFrame) and not unfinished.may_go_on:
            yield unfinished
        if isinstance(unfinished, UnfinishedFrame) and unfinished.has_failed:
            raise BrokerError("the message was not put on all of its queues; see the broker's log")


# ---- management sender -----------------------------------------------------------------------------------------------
#
# Publishes messages for Artemis' beans, as somebody who is named there, or as whoever may use the operation.


_CLIENT_ID = "management"


@final
class ManagementSender:
    """Implements ``Send`` for management. Without ``security`` nobody has to log in."""

    def __init__(self, turns: Turns, ports: Ports, security: Security | None) -> None:
        self._turns = turns
        self._security = security
        plain = AcceptorConfig(name=_CLIENT_ID, host="", port=0)
        authorizer = None if security is None else security.authorizer
        self._service = StompService(
            turns.broker, plain, Traffic(), ports.temporaries, turns.large, authorizer=authorizer
        )

    def __call__(
        self, user: str | None, password: str | None, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> Steps:
        """See ``Send``."""
        state = SessionState(self._service, self._turns.next_origin(), None)
        state.user, state.client_id = user, _CLIENT_ID
        if user is not None and self._security is not None:
            yield from self._log_in(state, self._security, Credentials(user, password))
        sent: Mapping[str, Any] = yield from HttpPublisher(state, lambda: self._turns.isolation.turn_ms).steps(
            headers, parts
        )
        return sent

    def _log_in(self, state: SessionState, security: Security, credentials: Credentials) -> Generator[Step, None, None]:
        """Raises NotAllowedError."""
        login = security.logins.begin(credentials, self._turns.schedule)
        if not login.may_go_on:
            yield login
        if login.identity is None:
            raise NotAllowedError(login.refusal)
        state.user = login.identity.user
        state.rights = security.authorizer.rights_of(login.identity)
