"""From the destinations of SENDs to routes."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses.route import Route
from artemis_py.message import Head, HeaderName
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.temporaries import Temporary, obtain_address
from artemis_py.stomp.wire.frames import Send, Shape
from artemis_py.stomp.wire.stamp import stamped

_REPLY_TO: Final = HeaderName("reply-to")


def route_of(state: SessionState, shape: Shape) -> Route:
    """Where a SEND goes. The route is remembered until a queue that matters to it is deleted; all
    connections share it, so who sends is looked at each time. Raises ArtemisError.
    """
    routes, rights = state.service.routes, state.rights
    route = routes.by_target.get(shape.target)
    if route is None or not state.broker.bindings.is_current(route):
        return _resolve(state, shape)
    if rights is not None:
        if route.decider in rights.senders:
            rights.checks.success += 1
        else:
            route.decider = rights.demand_send(route.asked_address, route.asked_queue)
    return route


def _resolve(state: SessionState, shape: Shape) -> Route:
    broker, service = state.broker, state.service
    by, permit = state.user or "", state.permit("send")
    if permit is None:
        service.check_named()
    temporary = temporary_of(state, shape.destination, "send")
    if temporary is not None:
        return broker.resolver.route(temporary.address, None, temporary.routing_type, by, permit)
    service.check_may_send(shape.address or shape.queue or "")
    if shape.address not in broker.addresses:
        if broker.resolver.is_gone(shape.address):
            return broker.resolver.route_to_nobody(shape.address, shape.routing_type, permit)
        broker.holdings.admit(f"SEND to the new address {shape.address[:80]}")
    route = broker.resolver.route(shape.address, shape.queue, shape.routing_type, by, permit)
    service.routes.remember(shape.target, route)
    return route


def temporary_of(state: SessionState, destination: str, permission: str) -> Temporary | None:
    """The temporary destination of this name, which the session then holds; None for any other destination. To create
    it, the client needs ``permission`` on it, too. Raises LimitError and NotAllowedError.
    """
    temporaries, broker = state.service.temporaries, state.broker
    if temporaries.would_make(destination, state.client):
        broker.holdings.admit("a temporary destination")
    temporary = temporaries.obtain(destination, state.client, state.service.limits.temporary_max)
    if temporary is not None:
        obtain_address(broker, temporary, state.user or "", state.permit(permission))
    return temporary


def head_for(state: SessionState, frame: Send) -> Head:
    """The frame's head, with the user's name if messages get one. If its reply-to names a temporary destination, the
    name that others can use replaces it.
    """
    head, rights = frame.head, state.rights
    if rights is not None and rights.stamp is not None:
        head = stamped(head, rights.stamp)
    if frame.shape.simple:
        return head
    reply_to = head.first(_REPLY_TO)
    temporary = None if reply_to is None else temporary_of(state, reply_to, "consume")
    return head if temporary is None else head.with_header("reply-to", temporary.address)
