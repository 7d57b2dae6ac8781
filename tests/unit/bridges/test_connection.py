"""One connection of a bridge: what becomes of a message, whatever the other broker answers."""

from __future__ import annotations

import errno
from unittest.mock import Mock

import pytest

from artemis_py.core.operations.scan import MessageFilter
from artemis_py.server.bridges.connection import BRIDGES_HEADER, FRAMES_PER_TURN, PARTIAL_BYTES_MAX, UNCONFIRMED_MAX
from tests.kit.bridged import LOG_ID, QUEUES, Bridged, opened
from tests.kit.in_process import DiskLog


def test_a_message_leaves_when_it_is_confirmed_and_not_before() -> None:
    bridged = opened()
    bridged.send(b"one", b"two", b"three")
    frames = bridged.sent()
    assert [(each.command, each.headers["destination"], each.body) for each in frames] == [
        ("SEND", "orders", b"one"), ("SEND", "orders", b"two"), ("SEND", "orders", b"three"),
    ]  # fmt: skip
    assert (bridged.depth(), bridged.connection.unconfirmed_count) == (3, 3)
    bridged.confirm(frames[1])
    assert (bridged.depth(), bridged.connection.unconfirmed_count, sum(bridged.confirmed)) == (2, 2, 1)
    bridged.confirm(frames[0], frames[2])
    assert (bridged.depth(), sum(bridged.confirmed)) == (0, 3)
    bridged.answer("RECEIPT", receipt_id=frames[0].headers["receipt"])
    bridged.answer("RECEIPT", receipt_id="something else")
    assert sum(bridged.confirmed) == 3
    assert not bridged.ends


def test_no_message_is_forwarded_that_a_crash_could_undo() -> None:
    log = DiskLog()
    bridged = opened(log=log)
    bridged.send(b"a", persistent="true")
    assert bridged.connection.unconfirmed_count == 1
    assert not bridged.sent()
    log.durable_lsn = log.last_lsn
    bridged.world.turns.schedule()
    bridged.world.settle()
    assert bridged.bodies() == [b"a"]


def test_the_login() -> None:
    bridged = Bridged(user="u", client_id="c")
    (greeting,) = bridged.sent()
    assert greeting.command == "CONNECT"
    named = {"host": "there", "login": "u", "passcode": "p", "client-id": "c", "heart-beat": "30000,30000"}
    assert {name: greeting.headers[name] for name in named} == named
    bridged.send(b"waits")
    assert not bridged.sent()
    bridged.answer("CONNECTED", version="1.2")
    assert bridged.bodies() == [b"waits"]


@pytest.mark.parametrize(
    ("command", "headers", "reason"),
    [
        ("ERROR", {"message": "who are you?"}, "ERROR: who are you?"),
        ("CONNECTED", {"version": "1.1"}, "the other broker speaks STOMP 1.1, and a bridge needs 1.2"),
        ("CONNECTED", {}, "the other broker speaks STOMP 1.0, and a bridge needs 1.2"),
    ],
)
def test_a_login_that_fails(command: str, headers: dict[str, str], reason: str) -> None:
    bridged = Bridged()
    bridged.answer(command, **headers)
    (end,) = bridged.ends
    assert (end.reason, end.was_open, end.refused) == (reason, False, 0)
    assert bridged.transport.lost


def test_no_answer_to_connect() -> None:
    bridged = Bridged()
    bridged.world.advance(9_999)
    assert not bridged.ends
    bridged.world.advance(2)
    assert bridged.ends[0].reason == "no CONNECTED within 10000 ms; is this a STOMP acceptor?"


def test_a_broken_link_returns_messages_in_their_order_and_counts_no_attempt() -> None:
    bridged = opened()
    bridged.send(b"a", b"b")
    for _ in range(5):  # more than max-delivery-attempts
        assert bridged.bodies() == [b"a", b"b"]
        bridged.lose()
        assert bridged.depth() == 2
        bridged.connect()
        bridged.log_in()
    assert bridged.bodies() == [b"a", b"b"]
    bridged.lose()
    assert bridged.attempts() == [(6, 0), (6, 0)]
    assert bridged.depth("dead") == 0
    assert {end.reason for end in bridged.ends} == {"the other broker has closed the connection"}


def test_a_broken_link_burns_no_delivery_of_a_queue_that_limits_them() -> None:
    limited = QUEUES.replace('name="orders"/>', 'name="orders" max-deliveries="2"/>')
    bridged = opened(limited)
    bridged.send(b"a")
    for _ in range(4):
        bridged.lose()
        bridged.connect()
        bridged.log_in()
    assert bridged.bodies() == [b"a"]


def test_a_message_that_is_refused_by_name_gets_to_the_dead_letters_and_stops_no_other() -> None:
    bridged = opened()
    bridged.send(b"bad", b"good")
    for attempt in (1, 2):
        bad, good = bridged.sent()
        bridged.answer("ERROR", receipt_id=bad.headers["receipt"], message="I do not want this")
        assert bridged.ends[-1].refused == int(bad.headers["receipt"])
        assert bridged.ends[-1].reason == "ERROR: I do not want this"
        assert bridged.depth("dead") == attempt - 1
        bridged.connect()
        bridged.log_in()
    assert bridged.depth("dead") == 1
    (good,) = bridged.sent()
    assert good.body == b"good"
    bridged.confirm(good)
    assert (bridged.depth(), bridged.depth("dead")) == (0, 1)


def test_without_a_dead_letter_address_a_message_that_is_refused_stays_and_is_tried_again() -> None:
    bridged = opened(WITHOUT_DEAD_LETTERS)
    bridged.send(b"bad", b"good")
    for _ in range(4):
        bad, _ = bridged.sent()
        bridged.answer("ERROR", receipt_id=bad.headers["receipt"], message="I do not want this")
        assert (bridged.ends[-1].refused, bridged.ends[-1].stays) == (int(bad.headers["receipt"]), True)
        bridged.connect()
        bridged.log_in()
    assert bridged.bodies() == [b"bad", b"good"]


LOOPING = {BRIDGES_HEADER: f"x@other,b@{LOG_ID}"}
WITHOUT_DEAD_LETTERS = QUEUES.replace("<dead-letter-address>dead</dead-letter-address>", "")


def test_a_message_that_comes_back_is_dead_at_once_and_the_others_go_on() -> None:
    bridged = opened()
    bridged.send(b"1")
    bridged.send(b"back", **LOOPING)
    bridged.send(b"2")
    frames = bridged.sent()
    assert [each.body for each in frames] == [b"1", b"2"]
    assert (bridged.depth(), bridged.depth("dead"), len(bridged.looped)) == (2, 1, 1)
    assert bridged.world.queue("orders").distribution.consumers[0].statistics.delivered_count == 2
    (letter,) = bridged.world.queue("dead").contents.order
    told = letter.message.head.properties
    assert (told["reason"], told["_AMQ_ORIG_QUEUE"], told["_AMQ_ORIG_MESSAGE_ID"]) == (
        "bridge_loop", "orders", str(bridged.looped[0]),
    )  # fmt: skip
    bridged.confirm(*frames)
    assert (bridged.depth(), bridged.connection.unconfirmed_count, bridged.ends) == (0, 0, [])


def test_very_many_messages_that_come_back_at_once() -> None:
    bridged = opened()
    bridged.world.together = True
    for _ in range(UNCONFIRMED_MAX + 1):
        bridged.send(b"back", **LOOPING)
    bridged.send(b"1")
    bridged.world.together = False
    bridged.world.settle()
    assert bridged.bodies() == [b"1"]
    assert (bridged.depth(), bridged.depth("dead")) == (1, UNCONFIRMED_MAX + 1)


def test_without_a_dead_letter_address_what_comes_back_stays_and_the_others_are_confirmed_first() -> None:
    bridged = Bridged(WITHOUT_DEAD_LETTERS)
    bridged.send(b"1")
    bridged.send(b"back", **LOOPING)
    bridged.send(b"2")
    bridged.log_in()
    frames = bridged.sent()
    assert [each.body for each in frames] == [b"1", b"2"]
    bridged.send(b"3")
    assert not bridged.sent(), "it takes no more"
    bridged.confirm(frames[0])
    assert not bridged.ends
    bridged.confirm(frames[1])
    (end,) = bridged.ends
    assert end.reason == f"bridges form a loop: message {bridged.looped[0]} has come back"
    assert (end.stays, end.refused, end.is_orderly) == (True, 0, False)
    assert bridged.attempts() == [(0, 0), (0, 0)]
    bridged.connect()
    bridged.log_in()
    assert bridged.bodies() == [b"3"]


def test_what_comes_back_is_no_dead_letter_on_the_address_that_it_comes_back_to() -> None:
    bridged = opened(QUEUES.replace(">dead</dead", ">orders</dead"))
    bridged.send(b"back", **LOOPING)
    assert [end.stays for end in bridged.ends] == [True]
    assert bridged.depth() == 1


def test_the_settings_of_the_address_that_a_message_was_sent_to_say_where_it_dies() -> None:
    core = QUEUES.replace('match="#"', 'match="orders.a"').replace('<address name="orders"', '<address name="orders.*"')
    for to, dead in (("orders.a", 1), ("orders.b", 0)):
        bridged = opened(core)
        bridged.send(b"back", to=to, **LOOPING)
        assert (bridged.depth(), bridged.depth("dead")) == (1 - dead, dead)


def test_what_an_operator_sends_back_is_forwarded_once_more() -> None:
    bridged = opened()
    bridged.send(b"back", **LOOPING)
    assert bridged.depth("dead") == 1
    broker = bridged.world.broker
    broker.message_operations.retry(broker.queues["dead"], MessageFilter())
    bridged.world.turns.schedule()
    bridged.world.settle()
    (frame,) = bridged.sent()
    assert (frame.body, frame.headers[BRIDGES_HEADER]) == (b"back", f"x@other,b@{LOG_ID}")
    bridged.confirm(frame)
    assert (bridged.depth(), bridged.depth("dead")) == (0, 0)


def test_a_peer_that_sends_faster_than_a_turn_takes_it_is_not_read_meanwhile() -> None:
    bridged = opened()
    many = b"A\n\n\0" * (3 * FRAMES_PER_TURN)
    bridged.connection.get_buffer(len(many))[: len(many)] = many
    bridged.connection.buffer_updated(len(many))
    bridged.connection.check(bridged.world.loop.clock_ms())
    assert not bridged.connection.socket.reads
    bridged.world.settle()
    assert bridged.connection.socket.reads
    bridged.answer("RECEIPT", receipt_id="9" * 5000)
    assert not bridged.ends


def test_a_message_that_is_refused_without_its_name_is_found_one_by_one() -> None:
    bridged = opened()
    bridged.send(b"1", b"bad", b"3")
    assert len(bridged.sent()) == 3
    bridged.answer("ERROR", message="one of these is bad")
    assert (bridged.ends[-1].refused, bridged.ends[-1].suspects) == (0, 3)
    assert bridged.attempts() == [(1, 0), (1, 0), (1, 0)]
    suspects = 3
    for _ in range(2):
        bridged.connect(suspects=suspects)
        bridged.log_in()
        (each,) = bridged.sent()
        if each.body == b"1":
            bridged.confirm(each)
            suspects -= 1
            (each,) = bridged.sent()
        assert each.body == b"bad"
        bridged.answer("ERROR", message="bad")
        assert bridged.ends[-1].refused == int(each.headers["receipt"])
        suspects = bridged.ends[-1].suspects
    assert bridged.depth("dead") == 1
    bridged.connect(suspects=suspects)
    bridged.log_in()
    bridged.send(b"4", b"5")
    for body in (b"3", b"4"):
        (each,) = bridged.sent()
        assert each.body == body
        bridged.confirm(each)
    assert bridged.bodies() == [b"5"]
    bridged.send(b"6")
    assert bridged.bodies() == [b"6"], "it is not careful any more"


def reconnect(bridged: Bridged) -> None:
    """The bridge connects again, and knows what the connection before has found out."""
    end = bridged.ends[-1]
    bridged.connect(end.suspects, end.suspected)
    bridged.log_in()


def take(bridged: Bridged, error: OSError | None = None) -> list[bytes]:
    """The other broker confirms what comes, and closes the connection over the body ``bad``."""
    taken: list[bytes] = []
    while frames := bridged.sent():
        for each in frames:
            if each.body == b"bad":
                bridged.connection.connection_lost(error)
                bridged.world.settle()
                return taken
            bridged.confirm(each)
            taken.append(each.body)
    return taken


def test_a_message_over_which_the_peer_closes_the_connection_gets_to_the_dead_letters() -> None:
    bridged = opened()
    bridged.send(b"1", b"bad", b"3")
    assert take(bridged) == [b"1"]
    bad = bridged.ends[-1].suspected
    closes = "the other broker has closed the connection"
    seen = []
    for _ in range(3):
        bridged.connect(bridged.ends[-1].suspects, bridged.ends[-1].suspected)
        bridged.lose()  # it is starting, say
        bridged.connect(bridged.ends[-1].suspects, bridged.ends[-1].suspected)
        bridged.answer("ERROR", message="not yet")
        reconnect(bridged)
        assert not take(bridged)
        seen.append((bridged.ends[-1].reason, bridged.ends[-1].refused, bridged.ends[-1].suspects))
    assert seen == [(f"{closes}, again with message {bad} on the way", refused, 2) for refused in (0, bad, bad)]
    reconnect(bridged)
    assert take(bridged) == [b"3"]
    (letter,) = bridged.world.queue("dead").contents.order
    assert (letter.message.body, letter.message.head.properties["reason"]) == (b"bad", "max_deliveries")
    bridged.send(b"4")
    assert take(bridged) == [b"4"]
    bridged.send(b"5", b"6")
    assert len(bridged.sent()) == 2, "it is not careful any more"


def test_without_a_dead_letter_address_a_message_over_which_the_peer_closes_stays_and_is_named() -> None:
    bridged = opened(WITHOUT_DEAD_LETTERS)
    bridged.send(b"bad", b"2")
    for _ in range(6):
        assert not take(bridged, ConnectionResetError(errno.ECONNRESET, "reset"))
        reconnect(bridged)
    bad = bridged.ends[0].suspected
    assert (bridged.ends[-1].stays, bridged.ends[-1].refused) == (True, bad)
    assert bridged.ends[-1].reason == f"the connection is lost: reset, again with message {bad} on the way"
    assert [attempts for _, attempts in bridged.attempts()] == [0], "and the other one is with the bridge"


def test_a_connection_that_is_lost_before_anything_was_sent_suspects_nobody() -> None:
    log = DiskLog()
    bridged = opened(log=log)
    bridged.send(b"a", persistent="true")
    for _ in range(4):
        assert not bridged.sent(), "it is not durable"
        bridged.lose()
        assert (bridged.ends[-1].suspected, bridged.ends[-1].suspects, bridged.ends[-1].refused) == (0, 0, 0)
        reconnect(bridged)
    for _ in range(4):
        bridged.lose()
        bridged.connect(bridged.ends[-1].suspects, bridged.ends[-1].suspected)  # and is not let in
    assert {(end.suspected, end.suspects, end.refused) for end in bridged.ends} == {(0, 0, 0)}


def test_a_link_that_breaks_suspects_nobody() -> None:
    bridged = opened()
    bridged.send(b"a")
    for _ in range(4):
        bridged.connection.connection_lost(OSError(errno.ETIMEDOUT, "timed out"))
        bridged.world.settle()
        reconnect(bridged)
    assert {(end.reason, end.suspected) for end in bridged.ends} == {("the connection is lost: timed out", 0)}


def test_a_peer_that_goes_on_after_each_close_is_no_suspicion() -> None:
    """It was killed again and again, say. What it has confirmed it did take."""
    bridged = opened()
    for _ in range(4):
        bridged.send(b"a", b"b", b"c")
        bridged.confirm(*bridged.sent()[:2])
        bridged.lose()
        reconnect(bridged)
        bridged.confirm(*bridged.sent())
    assert bridged.depth() == 0
    assert {(end.suspects, end.refused) for end in bridged.ends} == {(0, 0)}


def test_what_is_on_the_way_is_limited_in_bytes() -> None:
    bridged = opened(confirmation_window_size=1000, producer_window_size=5000)
    bridged.send(*[b"x" * 600] * 4)
    frames = bridged.sent()
    assert len(frames) == 2
    bridged.confirm(frames[0])
    assert len(bridged.sent()) == 1


def test_what_is_on_the_way_is_limited_in_number() -> None:
    bridged = opened(confirmation_window_size=-1, producer_window_size=-1)
    bridged.world.together = True
    bridged.send(*[b"x"] * (UNCONFIRMED_MAX + 1))
    bridged.world.together = False
    bridged.world.settle()
    assert bridged.connection.unconfirmed_count == UNCONFIRMED_MAX


def test_a_peer_that_does_not_read_gets_no_more() -> None:
    bridged = opened(confirmation_window_size=-1, producer_window_size=-1)
    bridged.transport.client_reads = False
    bridged.send(*[b"x" * 100_000] * 20)
    waiting = bridged.connection.unconfirmed_count
    assert 0 < waiting < 10
    bridged.transport.read_again()
    bridged.world.settle()
    assert len(bridged.sent()) == 20


def test_heart_beats_in_both_directions() -> None:
    bridged = opened(connection_ttl=20_000, check_period=1_000)
    bridged.lose()
    bridged.connect()
    bridged.log_in(heart_beat="5000,8000")
    bridged.world.advance(3_999)
    assert not bridged.transport.taken
    bridged.world.advance(2)
    assert bridged.transport.taken == b"\n", "after 0.4 of the 10 s that both agreed on"
    bridged.write(b"\n")
    bridged.world.advance(14_000)
    assert len(bridged.ends) == 1
    bridged.world.advance(1_001)
    assert bridged.ends[-1].reason == "the other broker has been silent for 15 s"


def test_a_peer_that_sends_rubbish_or_frames_without_end() -> None:
    bridged = opened()
    bridged.write(b"RECEIPT\nrubbish\n\n\0")
    assert bridged.ends[-1].reason.startswith("it does not speak STOMP 1.2: ")
    bridged.connect()
    bridged.log_in()
    bridged.write(b"MESSAGE\n\n" + b"x" * (PARTIAL_BYTES_MAX - 9))
    assert bridged.ends[-1].reason == f"the other broker has sent a frame of more than {PARTIAL_BYTES_MAX} bytes"


def test_frames_of_others_are_skipped() -> None:
    bridged = opened()
    bridged.answer("MESSAGE", subscription="1", message_id="2")
    bridged.send(b"a")
    bridged.confirm(*bridged.sent())
    assert bridged.depth() == 0


def test_very_many_answers_at_once() -> None:
    bridged = opened(confirmation_window_size=-1, producer_window_size=-1)
    bridged.world.together = True
    bridged.send(*[b"x"] * 1_200)
    bridged.world.together = False
    bridged.world.settle()
    frames = bridged.sent()
    assert len(frames) == 1_200
    bridged.write(b"".join(b"RECEIPT\nreceipt-id:%b\n\n\0" % each.headers["receipt"].encode() for each in frames))
    assert bridged.depth() == 0


def test_no_more_is_read_than_a_turn_takes_in() -> None:
    bridged = opened()
    bridged.world.together = True
    receipt = b"RECEIPT\nreceipt-id:0\n\n\0"
    for _ in range(PARTIAL_BYTES_MAX // 60_000 + 1):
        bridged.write(receipt * (60_000 // len(receipt)))
    assert not bridged.transport.reading
    bridged.world.together = False
    bridged.world.settle()
    assert bridged.transport.reading
    assert not bridged.ends


def test_a_filter_leaves_other_messages_alone() -> None:
    bridged = opened(filter="colour = 'red'")
    bridged.send(b"a", colour="red")
    bridged.send(b"b", colour="blue")
    bridged.send(b"c", colour="red")
    frames = bridged.sent()
    assert [each.body for each in frames] == [b"a", b"c"]
    bridged.confirm(*frames)
    assert bridged.depth() == 1


@pytest.mark.parametrize(
    ("core", "reason"),
    [
        ("", "queue orders does not exist; create it"),
        (
            QUEUES.replace('name="orders"/>', 'name="orders" non-destructive="true"/>'),
            "queue orders is non-destructive",
        ),
        (
            QUEUES.replace('name="orders"/>', 'name="orders" max-consumers="0"/>'),
            "Queue orders has reached its maximum",
        ),
    ],
)
def test_a_queue_that_it_cannot_have(core: str, reason: str) -> None:
    bridged = Bridged(core)
    bridged.log_in()
    (end,) = bridged.ends
    assert end.reason.startswith(reason)
    assert end.was_open, "another connector would not help"
    assert bridged.transport.lost


def test_a_stop_waits_for_what_is_on_the_way() -> None:
    bridged = opened()
    bridged.send(b"a", b"b")
    frames = bridged.sent()
    bridged.connection.stop(bridged.world.now_ms, 5_000)
    bridged.send(b"c")
    bridged.world.settle()
    assert not bridged.ends
    bridged.confirm(frames[0])
    assert not bridged.ends
    bridged.confirm(frames[1])
    assert (bridged.ends[0].is_orderly, bridged.ends[0].reason) == (True, "stopped")
    assert [each.command for each in bridged.sent()] == ["DISCONNECT"]
    assert bridged.depth() == 1


def test_a_stop_while_the_peer_does_not_read() -> None:
    bridged = opened(confirmation_window_size=-1, producer_window_size=-1)
    bridged.transport.client_reads = False
    bridged.send(*[b"x" * 100_000] * 10)
    waiting = bridged.connection.unconfirmed_count
    assert waiting < 10
    bridged.connection.stop(bridged.world.now_ms, 5_000)
    bridged.transport.read_again()
    bridged.world.settle()
    assert bridged.connection.unconfirmed_count == waiting, "it takes no more"


def test_a_stop_does_not_wait_for_ever() -> None:
    bridged = opened()
    bridged.send(b"a")
    bridged.connection.stop(bridged.world.now_ms, 5_000)
    bridged.world.advance(5_001)
    assert bridged.ends[0].is_orderly
    assert bridged.depth() == 1


def test_a_stop_before_the_login() -> None:
    bridged = Bridged()
    bridged.connection.stop(bridged.world.now_ms, 5_000)
    bridged.world.settle()
    assert bridged.ends[0].is_orderly
    assert not bridged.ends[0].was_open


def test_a_stop_while_the_login_is_answered() -> None:
    bridged = Bridged()
    bridged.connection.stop(bridged.world.now_ms, 5_000)
    bridged.log_in()
    assert not bridged.openings
    assert bridged.ends[0].is_orderly


def test_a_large_body_goes_out_in_pieces_and_others_behind_it() -> None:
    bridged = opened()
    large = bytes(range(256)) * 2_000
    bridged.sender.send(
        b"SEND\ndestination:/queue/orders\npersistent:true\ncontent-length:%d\n\n%b\0" % (len(large), large)
    )
    bridged.send(b"small")
    frames = bridged.sent()
    assert [(len(each.body), each.headers.get("content-length")) for each in frames] == [
        (len(large), str(len(large))), (5, None),
    ]  # fmt: skip
    assert frames[0].body == large
    bridged.confirm(*frames)
    assert bridged.depth() == 0


def test_a_failed_step_ends_the_connection_and_returns_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    bridged = opened()
    bridged.send(b"a")
    (each,) = bridged.sent()
    monkeypatch.setattr(bridged.connection, "_on_confirmed", Mock(side_effect=RuntimeError("told so")))
    bridged.send(b"b")
    bridged.confirm(each)
    assert bridged.ends[0].reason == "a step of the bridge has failed; see the broker's log"
    assert bridged.depth() == 1, "the message that was confirmed has left, the other one is there"
    assert bridged.world.stats.faults.counts["beat"] == 1
