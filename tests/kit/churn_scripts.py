"""What clients do that come and go: a visit is what one connection sends, and waits for, before it is dropped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from tests.kit.frames import frame

CONNECT: Final = b"CONNECT\naccept-version:1.2\nhost:x\nclient-id:%s\n\n\0"


class Step(NamedTuple):
    """Bytes to send, and what must have come before the next step; empty: nothing is waited for."""

    send: bytes
    awaited: bytes = b""


class Visit(NamedTuple):
    """One connection's life. It takes nothing of what it gets after its steps."""

    name: str
    steps: list[Step]
    http: bool = False


def send(destination: str, *headers: str, body: bytes = b"hello") -> bytes:
    """A SEND of known length."""
    return frame("SEND", f"destination:{destination}", f"content-length:{len(body)}", *headers, body=body)


def subscribe(id: str, destination: str, *headers: str) -> bytes:
    """A SUBSCRIBE that asks for a receipt with its id."""
    return frame("SUBSCRIBE", f"id:{id}", f"destination:{destination}", f"receipt:{id}", *headers)


def _read(destination: str, sent: bytes, awaited: bytes = b"MESSAGE") -> list[Step]:
    """A client reads from there what it sends itself."""
    return [Step(subscribe("1", destination) + sent, awaited)]


def visits(seed: int) -> Iterator[list[Visit]]:
    """A visit of each kind, again and again. What clients may choose is new in each: names, ids, selectors, header
    values.
    """
    chance = random.Random(seed)
    for number in count(1):
        mark = f"{number}-{chance.randrange(10**9)}"
        bad = [
            frame("FOO", f"x:{mark}"),
            frame("SEND", f"destination:/queue/q{mark}", "content-length:x"),
            b"SEND\n\r\r\0",
        ]
        headers = [f"h{mark}-{each}:{mark}" for each in range(10)]
        selector = f"selector:a{mark.replace('-', '_')} = '{mark}' OR colour LIKE '%{mark}%' AND n BETWEEN 1 AND 2"
        half = f"SEND\ndestination:/queue/q\nh:{mark}\ncontent-length:300000\n\n".encode()
        durable = f"durable-subscription-name:{mark}"
        kept = send("/queue/q", f"transaction:{mark}", f"h:{mark}", body=b"x" * 10_000) * 5
        committed = f"/queue/committed.{mark}"
        large = b"x" * chance.randrange(150_000, 600_000)
        groups = [send(f"/queue/groups.{mark}", f"JMSXGroupID:{mark}-{each}") for each in range(10)]
        temporary = f"/temp-queue/{mark}"
        greeted = {
            "nothing": [],
            "half_frame": [Step(half + b"x" * chance.randrange(200_000))],
            "bad_frame": [Step(chance.choice(bad), b"ERROR")],
            "selector": [
                Step(subscribe("1", f"/queue/selected.{mark}", selector, "ack:client"), b"RECEIPT"),
                Step(send(f"/queue/selected.{mark}", f"colour:{mark}", *headers, "receipt:2"), b"receipt-id:2"),
                Step(frame("UNSUBSCRIBE", "id:1", "receipt:3"), b"receipt-id:3"),
                Step(subscribe("4", f"/queue/selected.{mark}", "ack:auto"), b"MESSAGE"),
            ],
            # an address and a queue that go when nobody uses them
            "queue": _read(f"/queue/auto.{mark}", send(f"/queue/auto.{mark}", "persistent:true", "receipt:2")),
            "durable": [
                Step(subscribe("1", "/topic/durable", durable, "selector:colour = 'red'", "ack:client"), b"RECEIPT"),
                Step(send("/topic/durable", "persistent:true", "colour:red", "receipt:2"), b"receipt-id:2"),
                Step(frame("UNSUBSCRIBE", "id:1", durable, "receipt:9"), b"receipt-id:9"),
            ],
            "temporary": _read(temporary, send(temporary, f"reply-to:{temporary}")),
            "abandoned_transaction": [Step(frame("BEGIN", f"transaction:{mark}", "receipt:1") + kept, b"RECEIPT")],
            "commit": [
                Step(
                    frame("BEGIN", f"transaction:{mark}")
                    + send(committed, f"transaction:{mark}", "persistent:true")
                    + frame("COMMIT", f"transaction:{mark}", f"_AMQ_DUPL_ID:{mark}", "receipt:1"),
                    b"receipt-id:1",
                ),
                Step(subscribe("2", committed), b"MESSAGE"),
            ],
            "large": [
                Step(subscribe("1", f"/queue/large.{mark}"), b"RECEIPT"),
                Step(send(f"/queue/large.{mark}", "persistent:true", "receipt:2", body=large), b"receipt-id:2"),
            ],
            "scheduled": _read(
                temporary, send(temporary, "AMQ_SCHEDULED_DELAY:999999999", "receipt:2"), b"receipt-id:2"
            ),
            "expiring": _read(
                f"/queue/expiring.{mark}", send(f"/queue/expiring.{mark}", "expires:9999999999999", f"h:{mark}") * 20
            ),
            "groups": _read(f"/queue/groups.{mark}", b"".join(groups)),
            "duplicates": _read(
                f"/queue/duplicates.{mark}",
                send(f"/queue/duplicates.{mark}", f"_AMQ_DUPL_ID:{mark}", "persistent:true", "receipt:2") * 2,
                b"receipt-id:2",
            ),
            "unread": [
                Step(subscribe("1", f"/topic/unread.{mark}"), b"RECEIPT"),
                Step(send(f"/topic/unread.{mark}", body=b"x" * 50_000) * 10),
            ],
            "nacks": [
                Step(
                    subscribe("1", f"/queue/nacks.{mark}", "ack:client-individual")
                    + send(f"/queue/nacks.{mark}", f"h:{mark}", "persistent:true"),
                    b"MESSAGE",
                )
            ],
        }
        path = chance.choice(["/metrics", "/health/live", "/memory", "/log", "/nowhere"])
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        connected = Step(CONNECT % mark.encode(), b"CONNECTED")
        yield [
            Visit("half_connect", [Step(f"CONNECT\nx{mark}:".encode() + b"y" * chance.randrange(15_000))]),
            *(Visit(name, [connected, *steps]) for name, steps in greeted.items()),
            Visit("http", [Step(request, b"HTTP/1.1"), Step(request[: chance.randrange(20)])], http=True),
        ]
