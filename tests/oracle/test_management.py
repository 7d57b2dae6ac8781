"""Management messages and notifications: the same requests and the same doings on both brokers.

What differs on purpose is in docs/operations.md: notifications of further types, further headers, no names of a
cluster's, and texts for what makes no sense.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.kit.client import connected
from tests.kit.process import eventually
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.client import Client
from tests.oracle.configuration import Profile

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]

PROFILE = Profile("management", 100, ())
ON_BOTH = pytest.mark.parametrize(
    ("artemis", "ours"), [(PROFILE, PROFILE)], indirect=True, ids=["both"], scope="session"
)
WHERE = "activemq.management"
REPLIES = "oracle.management.replies"
HEARD = "activemq.notifications"
TURNS_MAX = 3
"""Artemis' threads race: only what differs so often is another behaviour."""

Request = tuple[str, str, str, tuple[object, ...]]
REQUESTS: list[Request] = [
    ("broker", "listNetworkTopology", "", ()),
    ("broker", "getAddressMemoryUsage", "", ()),
    ("queue.oracle.q", "", "messageCount", ()),
    ("queue.oracle.q", "", "MessageCount", ()),
    ("queue.oracle.q", "", "paused", ()),
    ("queue.oracle.q", "", "isPaused", ()),
    ("queue.oracle.q", "", "nothing", ()),
    ("queue.oracle.q", "getMessageCount", "", ()),
    ("queue.oracle.q", "isPaused", "", ()),
    ("queue.oracle.q", "getRoutingType", "", ()),
    ("queue.oracle.q", "getAddress", "", ()),
    ("queue.oracle.q", "pause", "", ()),
    ("queue.oracle.q", "", "paused", ()),
    ("queue.oracle.q", "pause", "", (True,)),
    ("queue.oracle.q", "resume", "", ()),
    ("queue.oracle.q", "countMessages", "", ()),
    ("queue.oracle.q", "removeAllMessages", "", ()),
    ("queue.oracle.q", "nothing", "", ()),
    ("queue.oracle.q", "nothing", "", ("a", 1)),
    ("queue.oracle.q", "pause", "", (True, False)),
    ("queue.oracle.none", "pause", "", ()),
    ("nothing", "pause", "", ()),
    ("address.oracle.q", "", "queueNames", ()),
    ("address.oracle.q", "", "routingTypes", ()),
    ("address.oracle.q", "getQueueNames", "", ()),
    ("acceptor.stomp", "", "name", ()),
    ("broker", "destroyQueue", "", ("oracle.q",)),
]
TYPES = {
    "BINDING_ADDED", "BINDING_REMOVED", "CONSUMER_CREATED", "CONSUMER_CLOSED", "SESSION_CREATED", "SESSION_CLOSED",
}  # fmt: skip
"""Those that Artemis sends of its own accord for what is done here."""
ONLY_THEIRS = {"_AMQ_ClusterName", "_AMQ_CertSubjectDN", "_AMQ_ValidatedUser"}
MADE_UP = {
    "_AMQ_Binding_ID", "_AMQ_ConsumerName", "_AMQ_NotifTimestamp", "_AMQ_ConnectionName", "_AMQ_SessionName",
    "_AMQ_RemoteAddress",
}  # fmt: skip
"""Headers whose values only one broker has."""
_OWN_QUEUE = re.compile(r"[0-9a-f-]{36}|temporary-[0-9a-f]{32}")


def replies(broker: BrokerUnderTest) -> list[tuple[str, Any]]:
    """Whether each request was done, and the value."""
    client = Client(broker.ports["stomp"])
    client.connect()
    for _ in range(2):
        client.ask("SEND", {"destination": "/queue/oracle.q"}, b"x")
    subscribe = {"destination": REPLIES, "id": "r", "ack": "auto", "subscription-type": "ANYCAST"}
    client.ask("SUBSCRIBE", subscribe)
    eventually(
        "both are there", lambda: (broker.counts("queue", "oracle.q") or {}).get("messages"), lambda seen: seen == 2
    )
    found: list[tuple[str, Any]] = []
    for number, (resource, operation, attribute, arguments) in enumerate(REQUESTS):
        asked = {"_AMQ_OperationName": operation} if operation else {"_AMQ_Attribute": attribute}
        sent = {"destination": WHERE, "reply-to": REPLIES, "correlation-id": str(number), "_AMQ_ResourceName": resource}
        client.send("SEND", {**sent, **asked}, json.dumps(arguments).encode())
        reply = client.message()
        assert reply.headers["correlation-id"] == str(number)
        assert reply.headers["destination"] == REPLIES
        found.append((reply.headers["_AMQ_OperationSucceeded"], json.loads(reply.body) if reply.body else None))
    client.close()
    return found


@ON_BOTH
def test_replies(artemis: BrokerUnderTest, ours: BrokerUnderTest) -> None:
    for request, their, our in zip(REQUESTS, replies(artemis), replies(ours), strict=True):
        if request[1] == "getAddressMemoryUsage":  # a message weighs something else there
            assert (our[0], type(our[1][0])) == (their[0], type(their[1][0]))
        else:
            assert (request, our) == (request, their)


def notifications(broker: BrokerUnderTest, turn: int) -> list[dict[str, str]]:
    """What a listener hears while somebody does all sorts of things, each turn with other names."""
    listener = connected(broker.ports["stomp"], client_id="listener")
    listener.request("SUBSCRIBE", {"destination": HEARD, "id": "n", "ack": "auto", "subscription-type": "MULTICAST"})
    doer = connected(broker.ports["stomp"], client_id="doer", login="ann")
    subscribe = {"destination": f"/queue/{turn}.oracle.n", "id": "1", "selector": "a = 'b'", "ack": "client"}
    doer.request("SUBSCRIBE", subscribe)
    doer.request("SUBSCRIBE", {"destination": f"/topic/{turn}.oracle.t", "id": "2"})
    durable = {"durable-subscription-name": f"d{turn}"}
    doer.request("SUBSCRIBE", {"destination": f"/topic/{turn}.oracle.t", "id": "3", **durable})
    doer.request("UNSUBSCRIBE", {"id": "2"})
    doer.request("UNSUBSCRIBE", {"id": "1"})
    doer.request("DISCONNECT", {})
    doer.close()
    heard: list[dict[str, str]] = []
    while not heard or heard[-1]["_AMQ_NotifType"] != "SESSION_CLOSED":
        message = listener.message()
        assert message.headers["destination"] == HEARD
        type, headers = message.headers["_AMQ_NotifType"], message.headers
        # Sessions of others, and a queue that a regular round deletes, come at any time.
        is_others = type in ("SESSION_CREATED", "SESSION_CLOSED") and headers["_AMQ_Client_ID"] != "doer"
        is_swept = type == "BINDING_REMOVED" and headers["_AMQ_RoutingName"].endswith("oracle.n")
        if type in TYPES and not is_others and not is_swept:
            shown = {name for name in headers if name.startswith("_AMQ_")} - ONLY_THEIRS
            heard.append({name: "?" if name in MADE_UP else _OWN_QUEUE.sub("?", headers[name]) for name in shown})
    listener.close()
    return heard


@ON_BOTH
def test_notifications(artemis: BrokerUnderTest, ours: BrokerUnderTest) -> None:
    for turn in range(TURNS_MAX):
        theirs, heard = notifications(artemis, turn), notifications(ours, turn)
        shared = [{name: our.get(name) for name in their} for their, our in zip(theirs, heard, strict=False)]
        if shared == theirs or turn == TURNS_MAX - 1:
            assert [one["_AMQ_NotifType"] for one in heard] == [one["_AMQ_NotifType"] for one in theirs]
            assert shared == theirs
            return
