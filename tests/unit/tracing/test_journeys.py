"""Spans from a log: beside known traffic, and in each case that a log can hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from artemis_py.message import COPIED, COPIED_QUEUE, UNKNOWN, Head, encode_headers
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Event,
    PageDropped,
    PageOpened,
    Published,
    Purged,
    Repeated,
    ScheduledDue,
    Session,
    Settled,
    Started,
)
from artemis_py.storage.retention.retention import RetentionSettings
from artemis_py.tracing.journeys import FinishedSpan, Journeys, parent_of
from artemis_py.tracing.reading import DirectorySource
from tests.kit import journal_story
from tests.kit.journal_story import START_MS, Story
from tests.unit.tracing import told
from tests.unit.tracing.told import at

TRACE = "0af7651916cd43dd8448eb211c80319c"
VALID = f"00-{TRACE}-b7ad6b7169203331-01"


published = partial(told.published, traceparent=VALID)
BEGINNING = [
    *(Changed(*at(1), "queue", {"id": number, "name": name}) for number, name in ((1, "one"), (2, "two"))),
    Session(*at(2), 50, "host:1", "me", "", "STOMP 1.2"),
    Consumer(*at(3), 60, 50, 1, "sub", "", "client", ""),
]


def fold(*events: Event) -> list[FinishedSpan]:
    return [*Journeys("log").spans([*BEGINNING, *events])]


def outcome(span: FinishedSpan) -> object:
    return span.attributes.get("artemis.reason", span.attributes.get("artemis.cause"))


def outcomes(spans: Sequence[FinishedSpan]) -> list[tuple[str, object, int, int]]:
    return [(span.name, outcome(span), span.start_ms, span.end_ms) for span in spans]


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        (VALID, True),
        (VALID.replace("00-", "cc-", 1) + "-later", True),
        (VALID[:-1] + "0", False),  # not sampled
        (VALID.replace("00-", "ff-", 1), False),
        (VALID + "-more", False),
        (VALID.upper(), False),
        (VALID.replace(TRACE, "0" * 32), False),
        (VALID.replace("b7ad6b7169203331", "0" * 16), False),
        (VALID + "\n", False),
        ("", False),
    ],
)
def test_only_a_valid_and_sampled_parent_counts(text: str, is_taken: bool) -> None:
    head = Head(encode_headers([("destination", "a"), ("traceparent", text)]), "a", persistent=True)
    assert (parent_of(head) is not None) == is_taken


def test_a_message_in_two_queues_has_a_span_in_each() -> None:
    spans = fold(published(10, 7, (1, 2)), Settled(*at(11), 2, "acked", (7,)), Settled(*at(12), 1, "expired", (7,)))
    assert outcomes(spans) == [("queue two", "acked", 1010, 1011), ("queue one", "expired", 1010, 1012)]
    assert [span.error for span in spans] == ["", "expired"]
    assert {span.parent.span_id for span in spans} == {"b7ad6b7169203331"}
    assert len({span.span_id for span in spans}) == 2


def test_each_delivery_has_a_span_below_that_of_the_queue() -> None:
    spans = fold(
        published(10, 7),
        Delivered(*at(11), 1, (7,), 60),
        Attempted(*at(12), 1, 7, 1, 0, 60, "nacked"),
        Delivered(*at(13), 1, (7,), 60),
        Consumer(*at(14), 60, 50, 1, "sub", "", "client", "lost"),
        Delivered(*at(15), 1, (7,), 61),
        Started(*at(17), "b", 62),
        Delivered(*at(18), 1, (7,), 62),
        Settled(*at(19), 1, "acked", (7,), 62),
    )
    causes = [("nacked", 1011, 1012), ("lost", 1013, 1014), ("restart", 1015, 1017), ("acked", 1018, 1019)]
    assert outcomes(spans) == [
        *(("deliver one", *cause) for cause in causes), ("queue one", "acked", 1010, 1019)
    ]  # fmt: skip
    assert {span.parent.span_id for span in spans[:-1]} == {spans[-1].span_id}
    assert spans[0].attributes["artemis.client"] == "host:1"
    assert spans[-1].attributes["artemis.attempts"] == 1
    assert len({span.span_id for span in spans}) == 5


def test_a_deleted_queue_ends_all_that_is_in_it() -> None:
    gone = Changed(*at(12), "queue-deleted", {"id": 1})
    spans = fold(published(10, 7), Delivered(*at(11), 1, (7,), 60), gone)
    assert [(span.name, span.end_ms) for span in spans] == [("deliver one", 1012), ("queue one", 1012)]


def test_a_purged_page_ends_what_is_in_it_but_for_what_is_kept() -> None:
    spans = fold(
        PageOpened(*at(4), 9, 1, 1, "a"),
        *(published(10 + place, 100 + place, place=place) for place in (1, 2, 3)),
        PageOpened(*at(14), 9, 2, 4, "a"),
        published(15, 104, place=4),
        Purged(*at(16), 1, 9, 1, (2,), "purged", 2, 0),
        Settled(*at(17), 1, "acked", (102,)),
    )
    assert [(span.attributes["messaging.message.id"], span.attributes["artemis.reason"]) for span in spans] == [
        ("101", "purged"), ("103", "purged"), ("102", "acked")
    ]  # fmt: skip


def test_a_purged_page_ends_where_the_next_one_began_though_that_is_gone() -> None:
    spans = fold(
        *(PageOpened(*at(3 + page), 9, page, 10 * page, "a") for page in (1, 2, 3)),
        *(published(10 + page, 100 + page, place=10 * page) for page in (1, 2, 3)),
        Settled(*at(14), 1, "acked", (102,)),
        PageDropped(*at(15), 9, 2),
        Purged(*at(16), 1, 9, 1, (), "purged", 1, 0),
    )
    assert [span.attributes["messaging.message.id"] for span in spans] == ["102", "101"]


@pytest.mark.parametrize("provenance", [UNKNOWN, COPIED + COPIED_QUEUE])
def test_a_dead_letter_links_to_its_original(provenance: int) -> None:
    copied: dict[str, Any] = {"_AMQ_ORIG_MESSAGE_ID": "7", "_AMQ_ORIG_QUEUE": "one"}
    spans = fold(
        published(10, 7),
        published(11, 8, (2,), 0, provenance, **copied),
        published(11, 9, (2,), **copied),
        Settled(*at(12), 1, "dead", (7,)),
        Settled(*at(13), 2, "acked", (8,)),
        Settled(*at(14), 2, "acked", (9,)),
    )
    dead, copy, sent = spans
    assert (list(sent.links), sent.attributes.get("artemis.original.message.id")) == ([], None)
    assert [(link.trace_id, link.span_id) for link in copy.links] == [(TRACE, dead.span_id)]
    assert copy.attributes["artemis.original.message.id"] == "7"


def test_a_message_that_falls_due_tells_when() -> None:
    (span,) = fold(published(10, 7), ScheduledDue(*at(15), 1, (7,)), Settled(*at(16), 1, "acked", (7,)))
    assert [(one.name, one.time_ms) for one in span.happenings] == [("due", 1015)]


def test_a_copy_made_by_compaction_stands_for_a_publication_that_is_gone() -> None:
    again = Repeated(*at(20), published(10, 7))
    end = Settled(*at(21), 1, "acked", (7,))
    assert outcomes(fold(again, end)) == outcomes(fold(published(10, 7), again, end)) == [
        ("queue one", "acked", 1010, 1021)
    ]  # fmt: skip


def test_the_oldest_are_given_up_and_counted() -> None:
    journeys = Journeys("log", open_max=100)
    for number in range(1, 251):
        journeys.take(published(number, number))
    assert journeys.open <= 100
    assert journeys.given_up == 250 - journeys.open
    assert journeys.oldest_lsn() == 250 - journeys.open + 1
    for number in range(1, 251):
        journeys.take(Settled(*at(300 + number), 1, "acked", (number,)))
    assert len(journeys.finished()) + journeys.given_up == 250
    assert (journeys.open, journeys.oldest_lsn()) == (0, None)


def test_those_that_wait_too_long_are_given_up() -> None:
    journeys = Journeys("log")
    for number in (1, 2, 3):
        journeys.take(published(number, number))
    journeys.give_up_before(1003)
    assert (journeys.open, journeys.given_up, journeys.oldest_lsn()) == (1, 2, 3)
    journeys.take(Repeated(*at(9), published(1, 1)))  # no news
    assert journeys.open == 1


@pytest.mark.parametrize("seed", range(5))
def test_random_traffic_becomes_the_spans_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    plain: Any = journal_story.message
    parent = "00-{0:032x}-{0:016x}-01".format
    monkeypatch.setattr(
        journal_story,
        "message",
        lambda number, *given: plain(number, *given, **({"traceparent": parent(number)} if number % 3 else {})),
    )
    story = Story(tmp_path / "journal", RetentionSettings(tmp_path / "kept", None, None))
    story.generate(Random(seed), 60)
    source = DirectorySource([path for path in (story.folder, tmp_path / "kept") if path.exists()])
    source.begin(0, 0)
    events: list[Event] = []
    for part in source.parts():
        events += part.events()
    journeys = Journeys("log")
    spans = [*journeys.spans(events)]
    assert expected(story) == sorted(
        (span.name, int(span.parent.trace_id, 16), span.start_ms, span.end_ms, outcome(span)) for span in spans
    )
    assert journeys.open == sum(number % 3 > 0 for live in story.live.values() for number in live)
    assert len({span.span_id for span in spans}) == len(spans) > 20
    check_resumption(events, spans, Random(seed))


def expected(story: Story) -> list[tuple[str, int, int, int, str]]:
    """What the spans must be, from what the story says of itself."""
    found: list[tuple[str, int, int, int, str]] = []
    delivered: dict[tuple[int, int], int] = {}
    recalled: dict[tuple[int, int], int] = {}
    """When a message of the past came to a queue."""
    for _, time_ms, kind, what in story.told:
        what = cast(Any, what)
        if kind == "delivered":
            for number in what[1]:
                if (what[0], number) in delivered:  # the story does not say when it returned
                    start_ms = delivered[what[0], number]
                    found.append((f"deliver q{what[0]}", number, start_ms, time_ms, "passed-on"))
                delivered[what[0], number] = time_ms
        elif kind == "attempted":
            queue, number, *_, cause = what
            start_ms = delivered.pop((queue, number))
            found.append((f"deliver q{queue}", number, start_ms, time_ms, cause))
        elif kind == "settled":
            queue, reason, numbers, _ = what
            for number in numbers:
                start_ms = delivered.pop((queue, number))
                found.append((f"deliver q{queue}", number, start_ms, time_ms, reason))
                start_ms = recalled.pop((queue, number), START_MS + number)
                found.append((f"queue q{queue}", number, start_ms, time_ms, reason))
        elif kind == "recalled":
            number, queues, *_ = what
            recalled.update({(queue, number): time_ms for queue in queues})
    return sorted(one for one in found if one[1] % 3)


def check_resumption(events: Sequence[Event], spans: Sequence[FinishedSpan], rng: Random) -> None:
    """Stopped anywhere, and continued behind the oldest open message: nothing is missing, and nothing comes twice."""
    descriptions = [event for event in events if isinstance(event, Session | Consumer | Changed)]
    for _ in range(5):
        stop = rng.randrange(1, len(events))
        first = Journeys("log")
        before = [*first.spans(events[:stop])]
        sent_lsn = events[stop - 1].lsn
        oldest = first.oldest_lsn()
        place = sent_lsn if oldest is None else oldest - 1
        second = Journeys("log", after_lsn=place, told_lsn=sent_lsn)
        known = [event for event in descriptions if event.lsn <= place]
        after = [*second.spans([*known, *(event for event in events if event.lsn > place)])]
        assert [*before, *after] == [*spans]


def test_what_has_no_trace_costs_no_span(tmp_path: Path) -> None:
    story = Story(tmp_path / "journal")
    story.turn(story.declare)
    story.turn(partial(story.publish, 1, [1]))
    source = DirectorySource([path for path in (story.folder, tmp_path / "kept") if path.exists()])
    source.begin(0, 0)
    assert not any(isinstance(event, Published) for part in source.parts() for event in part.events())
