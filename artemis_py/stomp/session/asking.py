"""A SEND to the address of management: a request. It is carried out at once, also in a transaction, as in Artemis."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import NotFoundError
from artemis_py.message import HeaderName, LargeBody
from artemis_py.stomp.requests import Pending, ReplyTo, Request
from artemis_py.stomp.session.addressing import temporary_of
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire.destinations import split_qualified
from artemis_py.stomp.wire.frames import FrameError, Send

BODY_BYTES_MAX: Final = 64 * 1024
_REPLY_TO: Final = HeaderName("reply-to")


def ask(state: SessionState, frame: Send, body: bytes | LargeBody) -> Pending:
    """Hand the request to whoever answers it. Raises ArtemisError, and then nothing is done."""
    service = state.service
    if state.rights is None:
        service.check_named()
    else:
        state.rights.demand("manage", frame.shape.address)
    if service.receiver is None:
        raise NotFoundError(f"{frame.shape.address} is the address for management messages, and nobody answers here")
    if isinstance(body, LargeBody) or len(body) > BODY_BYTES_MAX:
        raise FrameError(f"A management message has a body of at most {BODY_BYTES_MAX} bytes")
    reply_to = _reply_to(state, frame)
    return service.receiver.receive(
        Request(frame.head.properties, body, reply_to, state.rights, state.user, state.peer)
    )


def _reply_to(state: SessionState, frame: Send) -> ReplyTo | None:
    """Where the reply goes, if the client may send there. Raises ArtemisError."""
    shown = frame.head.first(_REPLY_TO)
    if shown is None:
        return None
    temporary = temporary_of(state, shown, "consume")
    if temporary is not None:
        return ReplyTo(shown, temporary.address, None, temporary.routing_type)
    name, routing_type = state.service.prefixes.split(shown)
    address, queue = split_qualified(name)
    state.service.check_may_send(address)
    if state.rights is not None:
        state.rights.demand_send(address, queue)
    return ReplyTo(shown, address, queue, routing_type)
