"""Notifications as listeners get them: as headers of a message, in Artemis' names, and as JSON."""

from __future__ import annotations

import json
from typing import Final

from artemis_py.core import notifications
from artemis_py.core.notifications import Notification
from artemis_py.message import Head, encode_headers

HEADERS: Final = {
    "address": "_AMQ_Address",
    "queue": "_AMQ_RoutingName",
    "queueID": "_AMQ_Binding_ID",
    "filter": "_AMQ_FilterString",
    "consumer": "_AMQ_ConsumerName",
    "consumerCount": "_AMQ_ConsumerCount",
    "connection": "_AMQ_ConnectionName",
    "session": "_AMQ_SessionName",
    "remoteAddress": "_AMQ_RemoteAddress",
    "user": "_AMQ_User",
    "clientID": "_AMQ_Client_ID",
    "protocol": "_AMQ_Protocol_Name",
    "message": "_AMQ_Message_ID",
    "permission": "_AMQ_CheckType",
}
"""The header of each field that Artemis has, too. The others go by their own names."""

SENTENCES: Final = {
    notifications.ADDRESS_ADDED: "an address was created",
    notifications.ADDRESS_REMOVED: "an address was deleted",
    notifications.BINDING_ADDED: "a queue was created",
    notifications.BINDING_REMOVED: "a queue was deleted",
    notifications.CONSUMER_CREATED: "a client subscribed",
    notifications.CONSUMER_CLOSED: "a subscription ended",
    notifications.CONSUMER_SLOW: "a consumer takes less than slow-consumer-threshold",
    notifications.CONNECTION_CREATED: "a client connected",
    notifications.CONNECTION_DESTROYED: "a client's connection ended",
    notifications.SESSION_CREATED: "a client was greeted; not with suppress-session-notifications",
    notifications.SESSION_CLOSED: "its session ended; not with suppress-session-notifications",
    notifications.MESSAGE_EXPIRED: "messages of a queue expired: count of them, and the id of the last",
    notifications.LOGIN_REFUSED: "somebody could not log in",
    notifications.PERMISSION_REFUSED: "a user was denied something",
    notifications.CONFIGURATION_RELOADED: "the configuration was read again: the result, how many changes and failures",
    notifications.CONFIGURATION_REFUSED: "an edit of the configuration was refused: the first problem, and how many",
    notifications.LOST: "so many notifications were left out, because there were too many at once",
    "QUEUE_OVERFULL": "senders to a queue wait",
    "QUEUE_UNDERFULL": "senders to a queue go on",
    "MESSAGES_DROPPED": "a ring gave up messages",
    "OPERATION": "an operator changed a queue",
    "SENDER_BLOCKED": "a sender waits for room on a queue, or on an address",
    "SENDER_UNBLOCKED": "it goes on",
    "MESSAGE_DISCARDED": "a message was discarded after its last attempt",
    "MESSAGE_DEAD": "a message went to the dead-letter address",
    "ALERT": "an alert threshold of a queue was crossed",
    "MESSAGE_REJECTED": "a full queue refused a message",
    "MESSAGE_LOOPED": "a message was dropped, because diverts, dead-letter or expiry addresses form a loop",
    "LIMIT_REACHED": "an address, queue or connection was refused at a limit",
    "QUEUE_SET_ASIDE": "a queue was paused because a step failed",
    "COPY_GIVEN_UP": "a copy or a task failed and was given up",
    "LEASES_ENDED": "leases ended before their messages were acknowledged",
    "QUEUE_HELD_UP": "nothing is delivered although messages are ready, because backlogs are used up",
    "QUEUE_FILLED": "a queue was filled from the log",
    "PAST_LOST": "the log does not have all that a queue was to be filled with",
}
"""What each type means."""

_OF_SESSIONS: Final = frozenset({notifications.SESSION_CREATED, notifications.SESSION_CLOSED})
_OF_BINDINGS: Final = frozenset({notifications.BINDING_ADDED, notifications.BINDING_REMOVED})
_DISTANT: Final = _OF_SESSIONS | _OF_BINDINGS | {notifications.CONSUMER_CREATED, notifications.CONSUMER_CLOSED}
_TYPE: Final = "_AMQ_NotifType"
_TIME: Final = "_AMQ_NotifTimestamp"


def head_of(notification: Notification, at_ms: int, address: str) -> Head:
    """The head of its message, on the address of notifications. Such a message has no body."""
    headers = [
        ("destination", address),
        ("priority", "4"),
        ("persistent", "false"),
        (_TYPE, notification.type),
        (_TIME, str(at_ms)),
    ]
    if notification.type in _OF_SESSIONS:
        headers.append((HEADERS["address"], address))
    if notification.type in _DISTANT:
        headers.append(("_AMQ_Distance", "0"))
    if notification.type in _OF_BINDINGS:
        headers.append(("_AMQ_Binding_Type", "0"))
    headers += [(HEADERS.get(name, name), str(value)) for name, value in notification.fields.items()]
    return Head(encode_headers(headers), address)


def json_of(notification: Notification, at_ms: int) -> str:
    """Its JSON object, in one line."""
    return json.dumps({"type": notification.type, "at": at_ms, **notification.fields}, ensure_ascii=False)
