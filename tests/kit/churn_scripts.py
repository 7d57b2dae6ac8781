"""What clients do that come and go: a visit is what one connection sends, and waits for, before it is dropped."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

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


def frame(command: str, *headers: str, body: bytes = b"") -> bytes:
    """A STOMP frame."""
    return "".join(f"{line}\n" for line in (command, *headers, "")).encode() + body + b"\0"


def send(destination: str, *headers: str, body: bytes = b"hello") -> bytes:
    """A SEND of known length."""
    return frame("SEND", f"destination:{destination}", f"content-length:{len(body)}", *headers, body=body)


def subscribe(id: str, destination: str, *headers: str) -> bytes:
    """A SUBSCRIBE that asks for a receipt with its id."""
    return frame("SUBSCRIBE", f"id:{id}", f"destination:{destination}", f"receipt:{id}", *headers)


class Visits:
    """Draws one visit after the other. What clients may choose is new in each: names, ids, selectors, header values."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._number = 0
        self.kinds: list[Callable[[str], list[Step]]] = [
            self._nothing, self._half_connect, self._half_frame, self._bad_frame, self._selector, self._queue,
            self._durable, self._temporary, self._abandoned_transaction, self._commit, self._large, self._scheduled,
            self._expiring, self._groups, self._duplicates, self._unread, self._nacks,
        ]  # fmt: skip

    def next(self) -> Visit:
        """Another visit, of a kind by chance."""
        return self.of(self._chance.randrange(len(self.kinds) + 1))

    def of(self, place: int) -> Visit:
        """A visit of the kind at a place in ``kinds``; behind the last one: HTTP."""
        self._number += 1
        mark = f"{self._number}-{self._chance.randrange(10**9)}"
        if place == len(self.kinds):
            return Visit("http", self._http(), http=True)
        kind = self.kinds[place]
        return Visit(kind.__name__.strip("_"), kind(mark))

    # ---- kinds -----------------------------------------------------------------------------------

    def _greeted(self, mark: str, *steps: Step) -> list[Step]:
        return [Step(CONNECT % mark.encode(), b"CONNECTED"), *steps]

    def _nothing(self, mark: str) -> list[Step]:
        return self._greeted(mark)

    def _half_connect(self, mark: str) -> list[Step]:
        return [Step(f"CONNECT\nx{mark}:".encode() + b"y" * self._chance.randrange(15_000))]

    def _half_frame(self, mark: str) -> list[Step]:
        body = b"x" * self._chance.randrange(200_000)
        return self._greeted(
            mark, Step(f"SEND\ndestination:/queue/q\nh:{mark}\ncontent-length:300000\n\n".encode() + body)
        )

    def _bad_frame(self, mark: str) -> list[Step]:
        bad = self._chance.choice(
            [
                frame("FOO", f"x:{mark}"),
                frame("SEND", f"destination:/queue/q{mark}", "content-length:x"),
                b"SEND\n\r\r\0",
            ]
        )
        return self._greeted(mark, Step(bad, b"ERROR"))

    def _selector(self, mark: str) -> list[Step]:
        selector = f"selector:a{mark.replace('-', '_')} = '{mark}' OR colour LIKE '%{mark}%' AND n BETWEEN 1 AND 2"
        headers = [f"h{mark}-{number}:{mark}" for number in range(10)]
        return self._greeted(
            mark,
            Step(subscribe("1", f"/queue/selected.{mark}", selector, "ack:client"), b"RECEIPT"),
            Step(send(f"/queue/selected.{mark}", f"colour:{mark}", *headers, "receipt:2"), b"receipt-id:2"),
            Step(frame("UNSUBSCRIBE", "id:1", "receipt:3"), b"receipt-id:3"),
            Step(subscribe("4", f"/queue/selected.{mark}", "ack:auto"), b"MESSAGE"),
        )

    def _queue(self, mark: str) -> list[Step]:
        """An address and a queue that go when nobody uses them."""
        data = send(f"/queue/auto.{mark}", "persistent:true", "receipt:2")
        return self._greeted(mark, Step(subscribe("1", f"/queue/auto.{mark}") + data, b"MESSAGE"))

    def _durable(self, mark: str) -> list[Step]:
        name = f"durable-subscription-name:{mark}"
        end = frame("UNSUBSCRIBE", "id:1", name, "receipt:9")
        data = send("/topic/durable", "persistent:true", "colour:red", "receipt:2")
        begin = subscribe("1", "/topic/durable", name, "selector:colour = 'red'", "ack:client")
        return self._greeted(mark, Step(begin, b"RECEIPT"), Step(data, b"receipt-id:2"), Step(end, b"receipt-id:9"))

    def _temporary(self, mark: str) -> list[Step]:
        data = send(f"/temp-queue/{mark}", f"reply-to:/temp-queue/{mark}")
        return self._greeted(mark, Step(subscribe("1", f"/temp-queue/{mark}") + data, b"MESSAGE"))

    def _abandoned_transaction(self, mark: str) -> list[Step]:
        data = send("/queue/q", f"transaction:{mark}", f"h:{mark}", body=b"x" * 10_000) * 5
        return self._greeted(mark, Step(frame("BEGIN", f"transaction:{mark}", "receipt:1") + data, b"RECEIPT"))

    def _commit(self, mark: str) -> list[Step]:
        data = frame("BEGIN", f"transaction:{mark}") + send(
            f"/queue/committed.{mark}", f"transaction:{mark}", "persistent:true"
        )
        commit = frame("COMMIT", f"transaction:{mark}", f"_AMQ_DUPL_ID:{mark}", "receipt:1")
        return self._greeted(
            mark, Step(data + commit, b"receipt-id:1"), Step(subscribe("2", f"/queue/committed.{mark}"), b"MESSAGE")
        )

    def _large(self, mark: str) -> list[Step]:
        body = b"x" * self._chance.randrange(150_000, 600_000)
        data = send(f"/queue/large.{mark}", "persistent:true", "receipt:2", body=body)
        return self._greeted(
            mark, Step(subscribe("1", f"/queue/large.{mark}"), b"RECEIPT"), Step(data, b"receipt-id:2")
        )

    def _scheduled(self, mark: str) -> list[Step]:
        data = send(f"/temp-queue/{mark}", "AMQ_SCHEDULED_DELAY:999999999", "receipt:2")
        return self._greeted(mark, Step(subscribe("1", f"/temp-queue/{mark}") + data, b"receipt-id:2"))

    def _expiring(self, mark: str) -> list[Step]:
        data = send(f"/queue/expiring.{mark}", "expires:9999999999999", f"h:{mark}") * 20
        return self._greeted(mark, Step(subscribe("1", f"/queue/expiring.{mark}") + data, b"MESSAGE"))

    def _groups(self, mark: str) -> list[Step]:
        data = b"".join(send(f"/queue/groups.{mark}", f"JMSXGroupID:{mark}-{number}") for number in range(10))
        return self._greeted(mark, Step(subscribe("1", f"/queue/groups.{mark}") + data, b"MESSAGE"))

    def _duplicates(self, mark: str) -> list[Step]:
        data = send(f"/queue/duplicates.{mark}", f"_AMQ_DUPL_ID:{mark}", "persistent:true", "receipt:2")
        return self._greeted(mark, Step(subscribe("1", f"/queue/duplicates.{mark}") + data * 2, b"receipt-id:2"))

    def _unread(self, mark: str) -> list[Step]:
        data = send(f"/topic/unread.{mark}", body=b"x" * 50_000) * 10
        return self._greeted(mark, Step(subscribe("1", f"/topic/unread.{mark}"), b"RECEIPT"), Step(data))

    def _nacks(self, mark: str) -> list[Step]:
        data = send(f"/queue/nacks.{mark}", f"h:{mark}", "persistent:true")
        return self._greeted(
            mark, Step(subscribe("1", f"/queue/nacks.{mark}", "ack:client-individual") + data, b"MESSAGE")
        )

    def _http(self) -> list[Step]:
        path = self._chance.choice(["/metrics", "/health/live", "/memory", "/log", "/nowhere"])
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        return [Step(request, b"HTTP/1.1"), Step(request[: self._chance.randrange(20)])]
