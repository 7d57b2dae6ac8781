"""Scenes of the operations on messages, dead letters and jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import Exactly, Rows, Scene, Shows
from tests.e2e.management.told import Told


def browsed(told: Told, queue: str, query: str = "") -> list[dict[str, Any]]:
    """The messages of a queue."""
    return list(told.asked("GET", f"/api/queues/{queue}/messages{query}")["data"])


def _three(told: Told) -> None:
    told.send("/queue/orders", "ab", persistent="true", region="eu")
    told.send("/queue/orders", "c", persistent="true", region="us", **{"content-type": "text/plain"})


def _dead(told: Told) -> None:
    """Two dead letters of the queue orders, by an operator."""
    told.send("/queue/orders", "ab", persistent="true", region="eu")
    told.asked("POST", "/api/queues/orders/dead?filter=region=%27eu%27")


def _job(told: Told) -> None:
    _dead(told)
    told.asked("POST", "/api/dead-letters/retry?rate=1")


_SCHEDULED: Final = partial(
    Told.send, destination="/queue/orders", bodies="ab", persistent="true", AMQ_SCHEDULED_DELAY=3_600_000
)
_DAILY: Final = partial(Told.send, destination="/queue/orders", persistent="true", AMQ_SCHEDULED_CRON="0 9 * * *")


def _leaves(told: Told, answer: Any, *, queue: str = "orders", left: Sequence[str], **values: object) -> None:
    """The answer holds these values, or is none, and the queue has these bodies."""
    if values:
        told_of = values if "inDelivery" in answer else {name: values[name] for name in values if name in answer}
        assert told_of
        assert {name: answer[name] for name in told_of} == told_of
    else:
        assert answer is None
    assert [row["BodyPreview"] for row in browsed(told, queue)] == list(left)


def _is_browsed(_told: Told, answer: Any) -> None:
    """A bean gives the rows alone."""
    if isinstance(answer, dict):
        assert (answer["count"], answer["lookedAt"], answer["isWhole"]) == (3, 3, True)
    rows = answer["data"] if isinstance(answer, dict) else answer
    if "BodyPreview" in rows[0]:
        assert [row["BodyPreview"] for row in rows] == ["a", "b", "c"]


def _goes_back(told: Told, answer: Any) -> None:
    assert answer["retried"] == 2
    left = told.asked("GET", "/api/queues?where=name=DLQ.orders&fields=messageCount")["data"]
    assert left in ([{"messageCount": 0}], []), "the queue was created for them, and goes with the next sweep"
    rows = browsed(told, "orders")
    assert [(row["BodyPreview"], row["retried"], row["cause"]) for row in rows] == [
        ("a", 1, "sent_by_operator"),
        ("b", 1, "sent_by_operator"),
    ]


MESSAGES: Final[dict[str, Scene]] = {
    "queue.browse": Scene({"queue": "orders"}, _is_browsed, _three, by_bean=_is_browsed),
    "queue.countMessages": Scene(
        {"queue": "orders"}, {"count": 3}, _three, by_bean=lambda _, answer: answer in (3, "{}")
    ),
    "queue.getMessage": Scene(
        {"queue": "orders", "message": "3"},
        lambda _, it: (it["body"], it["headers"]["region"], it["state"]) == ("c", "us", "ready"),
        _three,
    ),
    "queue.getMessageBody": Scene({"queue": "orders", "message": "3"}, Exactly(b"c"), _three),
    "queue.removeMessage": Scene({"queue": "orders", "message": "2"}, partial(_leaves, left="ac", removed=1), _three),
    "queue.removeMessages": Scene(
        {"queue": "orders", "filter": "region = 'eu'"}, partial(_leaves, left="c", removed=2, inDelivery=0), _three
    ),
    "queue.expireMessage": Scene({"queue": "orders", "message": "1"}, partial(_leaves, left="bc", expired=1), _three),
    "queue.expireMessages": Scene(
        {"queue": "orders", "filter": "region = 'us'"},
        partial(_leaves, queue="EXP.orders", left="c", expired=1),
        _three,
    ),
    "queue.moveMessage": Scene(
        {"queue": "orders", "message": "2", "target": "jobs"}, partial(_leaves, queue="jobs", left="b", moved=1), _three
    ),
    "queue.moveMessages": Scene(
        {"queue": "orders", "target": "jobs"}, partial(_leaves, queue="jobs", left="abc", moved=3, kept={}), _three
    ),
    "queue.copyMessage": Scene(
        {"queue": "orders", "message": "2", "target": "jobs"},
        partial(_leaves, queue="jobs", left="b", copied=1),
        _three,
    ),
    "queue.copyMessages": Scene({"queue": "orders", "target": "jobs"}, partial(_leaves, left="abc", copied=3), _three),
    "queue.changeMessagePriority": Scene(
        {"queue": "orders", "message": "3", "priority": "9"}, partial(_leaves, left="cab", changed=1), _three
    ),
    "queue.changeMessagesPriority": Scene(
        {"queue": "orders", "priority": "7"}, partial(_leaves, left="abc", changed=3), _three
    ),
    "queue.sendMessageToDeadLetterAddress": Scene(
        {"queue": "orders", "message": "1"}, partial(_leaves, queue="DLQ.orders", left="a", sent=1), _three
    ),
    "queue.sendMessagesToDeadLetterAddress": Scene(
        {"queue": "orders", "filter": "region = 'eu'"}, partial(_leaves, queue="DLQ.orders", left="ab", sent=2), _three
    ),
    "queue.retryMessage": Scene({"queue": "DLQ.orders", "message": "3"}, partial(_leaves, left="a", retried=1), _dead),
    "queue.retryMessages": Scene({"queue": "DLQ.orders"}, _goes_back, _dead),
    "queue.deliverScheduledMessage": Scene(
        {"queue": "orders", "message": "2"},
        partial(_leaves, left="ba", delivered=1),
        _SCHEDULED,
        by_bean=partial(_leaves, left="ba"),
    ),
    "queue.deliverScheduledMessages": Scene(
        {"queue": "orders"},
        partial(_leaves, left="ab", delivered=2),
        _SCHEDULED,
        by_bean=partial(_leaves, left="ab"),
    ),
    "listDeadLetters": Scene(
        {},
        lambda _, it: (
            [(row["queue"], row["originalQueue"], row["cause"], row["count"]) for row in it["data"]]
            == [("DLQ.orders", "orders", "sent_by_operator", 2)]
        ),
        _dead,
    ),
    "retryDeadLetters": Scene({}, _goes_back, _dead),
    "listJobs": Scene(
        {},
        lambda _, it: (
            [(int(row["id"]), int(row["planned"]), row["what"]) for row in it["data"]] == [(1, 2, "retry dead letters")]
        ),
        _job,
    ),
    "stopJob": Scene({"job": "1"}, {"id": 1, "state": "stopped"}, _job),
    "listSchedules": Scene({}, Rows("destination", {"orders"}), _DAILY),
    "cancelSchedule": Scene(
        {"schedule": "1"}, [Exactly({"cancelled": 1}), Shows("/api/schedules", {"count": 0})], _DAILY
    ),
}
