"""The agreement on heart-beats (Artemis' own examples) and what it means for the two sides."""

from __future__ import annotations

import pytest

from artemis_py.stomp.heartbeat import HeartbeatIntervals, HeartbeatRules, negotiate
from artemis_py.stomp.wire.frames import FrameError
from tests.kit.broker_frames import acceptor


def rules(ttl_override_ms: int = -1, **params: object) -> HeartbeatRules:
    return HeartbeatRules.of(acceptor(**params), ttl_override_ms)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("0,0", "0,30000"),
        ("1,0", "0,500"),
        ("1,1", "500,500"),
        ("500,1000", "1000,500"),
        ("0,1000", "1000,30000"),
        ("20000,30000", "30000,20000"),
        (" 500 , 1000 ", "1000,500"),
        ("0,300000", "300000,30000"),
        ("0,999999999999", "300000,30000"),
    ],
)
def test_answers(asked: str, answer: str) -> None:
    assert negotiate(asked, rules()).header == answer


@pytest.mark.parametrize(("asked", "answer"), [("1,0", "0,2500"), ("20000,0", "0,5000"), ("3000,0", "0,3000")])
def test_answers_within_limits(asked: str, answer: str) -> None:
    assert negotiate(asked, rules(connectionTtlMin=5000, connectionTtlMax=10000)).header == answer


def test_another_modifier() -> None:
    beats = negotiate("1000,0", rules(heartBeatToConnectionTtlModifier=3))
    assert beats.header == "0,1000"
    assert beats.ttl_ms == 3000


def test_ttl_is_twice_the_period_and_a_second_at_least() -> None:
    assert negotiate("4000,0", rules()).ttl_ms == 8000
    assert negotiate("1,0", rules()).ttl_ms == 1000


def test_no_header_no_answer_and_no_end() -> None:
    assert negotiate(None, rules()) == HeartbeatIntervals(send_ms=0, ttl_ms=0, header=None)


def test_a_client_without_beats_is_not_expected_to_send() -> None:
    assert negotiate("0,0", rules()).ttl_ms == 0
    assert negotiate("0,5000", rules()).ttl_ms == 0


def test_a_ttl_for_silent_clients_where_the_file_asks_for_one() -> None:
    assert negotiate(None, rules(connectionTtl=7000)).ttl_ms == 7000
    assert negotiate("0,0", rules(connectionTtl=7000)) == HeartbeatIntervals(send_ms=0, ttl_ms=7000, header="0,3500")
    assert negotiate(None, rules(9000)).ttl_ms == 9000
    assert negotiate(None, rules(9000, connectionTtl=7000)).ttl_ms == 7000


def test_the_broker_sends_in_time() -> None:
    """At least once in each period that was promised, with some to spare."""
    beats = negotiate("0,1000", rules())
    assert beats.send_ms == 1000
    assert 0 < beats.every_ms < 1000


@pytest.mark.parametrize(
    "text", ["", ",", "1", "1,", ",1", "a,b", "1;1", "-1,0", "1,2,3", "1.5,0", "²,0", "9" * 13 + ",0"]
)
def test_malformed(text: str) -> None:
    with pytest.raises(FrameError, match="heart-beat"):
        negotiate(text, rules())
