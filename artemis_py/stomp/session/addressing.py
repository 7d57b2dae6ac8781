"""From the destinations of SENDs to routes."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses.route import Route
from artemis_py.message import Head, HeaderName
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.temporaries import Temporary, obtain_address
from artemis_py.stomp.wire.frames import Send, Shape

_REPLY_TO: Final = HeaderName("reply-to")


def route_of(state: SessionState, shape: Shape) -> Route:
    """Where a SEND goes. The route is remembered until a queue that matters to it is deleted. Raises ArtemisError."""
    broker, routes = state.broker, state.service.routes
    route = routes.by_target.get(shape.target)
    if route is None or not broker.bindings.is_current(route):
        by = state.user or ""
        temporary = temporary_of(state, shape.destination)
        if temporary is not None:
            return broker.resolver.route(temporary.address, None, temporary.routing_type, by)
        state.service.check_served(shape.address or shape.queue or "")
        if shape.address not in broker.addresses:
            broker.holdings.admit(f"SEND to the new address {shape.address[:80]}")
        route = broker.resolver.route(shape.address, shape.queue, shape.routing_type, by)
        routes.remember(shape.target, route)
    return route


def temporary_of(state: SessionState, destination: str) -> Temporary | None:
    """The temporary destination of this name, which the session then holds; None for any other destination. Raises
    LimitError.
    """
    temporaries, broker = state.service.temporaries, state.broker
    if temporaries.would_make(destination, state.client):
        broker.holdings.admit("a temporary destination")
    temporary = temporaries.obtain(destination, state.client, state.service.limits.temporary_max)
    if temporary is not None:
        obtain_address(broker, temporary, state.user or "")
    return temporary


def head_for(state: SessionState, frame: Send) -> Head:
    """The frame's head. If its reply-to names a temporary destination, the name that others can use replaces it."""
    head = frame.head
    if frame.shape.simple:
        return head
    reply_to = head.first(_REPLY_TO)
    temporary = None if reply_to is None else temporary_of(state, reply_to)
    return head if temporary is None else head.with_header("reply-to", temporary.address)
