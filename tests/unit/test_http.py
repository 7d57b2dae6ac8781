"""HTTP connections on a fake loop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from artemis_py.server.http.monitoring_routes import health_routes, metrics_routes
from artemis_py.server.http.requests import HttpLimits, Response
from artemis_py.server.http.routing import Route
from tests.kit.core import broker_of, queue_config
from tests.kit.metrics import exporter_of
from tests.kit.stepped_http import GET, SteppedHttp, answer, answers


def test_a_request_is_routed_and_the_connection_stays() -> None:
    world = SteppedHttp()
    transport = world.talk(b"GET /echo?a=1&b=2 HTTP/1.1\r\nHost: broker\r\nX-One: 1\r\nx-one: 2\r\n\r\n")
    status, headers, body = answer(transport)
    assert (status, headers["content-type"], body) == (200, "text/plain", b"GET a=1&b=2")
    assert headers["content-length"] == str(len(body))
    assert (transport.closed, transport.reading) == (False, True)
    (request,) = world.requests
    assert (request.path, request.query, request.headers["x-one"]) == ("/echo", "a=1&b=2", "1, 2")


@pytest.mark.parametrize(
    "stream",
    [
        GET,
        GET + b"HEAD /echo?q HTTP/1.1\r\nHost: broker\r\n\r\n" + GET,
        b"GET /none HTTP/1.1\r\nHost: broker\r\n\r\n" + GET,
        b"POST /echo HTTP/1.1\r\nHost: broker\r\nContent-Length: 5\r\n\r\nhello" + GET,
        b"GET /pieces HTTP/1.1\r\nHost: broker\r\n\r\n" + GET,
        b"GET / HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n",
        b"GET /echo HTTP/1.0\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n\r\n",
    ],
)
def test_any_split_of_the_stream_gives_the_same_answers(stream: bytes) -> None:
    routes = [Route("/pieces", {"GET": lambda _: Response(200, "text/plain", iter([b"one", b"", b"two"]))})]
    whole = SteppedHttp(routes).talk(stream)
    assert whole.taken
    for step in (1, 2, 3, 7):
        split = SteppedHttp(routes).talk(stream, step=step)
        assert (split.taken, split.closed) == (whole.taken, whole.closed)
    for cut in range(1, len(stream)):
        world = SteppedHttp(routes)
        connection, transport = world.connect()
        for part in (stream[:cut], stream[cut:]):
            connection.data_received(part)
            world.loop.run()
        assert (transport.taken, transport.closed) == (whole.taken, whole.closed)


def test_pipelined_requests_are_answered_in_order_one_per_round_of_the_loop() -> None:
    world = SteppedHttp()
    connection, transport = world.connect()
    connection.data_received(b"".join(GET.replace(b"/echo", f"/echo?{n}".encode()) for n in range(3)))
    assert len(world.requests) == 1
    assert not transport.reading
    world.loop.run(rounds=1)
    assert len(world.requests) == 2
    world.loop.run()
    assert [body for _status, _headers, body in answers(transport.taken, "GET", "GET", "GET")] == [
        b"GET 0",
        b"GET 1",
        b"GET 2",
    ]
    assert transport.reading


def test_head_has_the_headers_of_get_and_no_body() -> None:
    got = answer(SteppedHttp().talk(GET.replace(b"/echo", b"/echo?1234")))
    status, headers, body = answer(SteppedHttp().talk(b"HEAD /echo?123 HTTP/1.1\r\nHost: broker\r\n\r\n"), "HEAD")
    assert (status, headers["content-length"], body) == (200, got[1]["content-length"], b"")


@pytest.mark.parametrize(
    ("stream", "status", "text", "closed"),
    [
        (b"GET /nothing HTTP/1.1\r\nHost: broker\r\n\r\n", 404, b"no such path: /nothing\n", False),
        (b"DELETE /echo HTTP/1.1\r\nHost: broker\r\n\r\n", 405, b"method not allowed; use GET, HEAD\n", False),
        (b"nonsense\r\n\r\n", 400, b"", True),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400, b"", True),
        (b"CONNECT\naccept-version:1.2\nhost:broker\n\n\0", 400, b"", True),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400, b"", True),
        (b"GET /echo HTTP/1.1\r\nHost: broker\r\nContent-Length: x\r\n\r\n", 400, b"", True),
        (b"GET /echo HTTP/1.1\r\nHost: broker\r\nTransfer-Encoding: gzip\r\n\r\n", 501, b"", True),
        (b"GET /echo HTTP/1.1\r\nHost: broker\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", 417, b"", True),
    ],
)
def test_what_cannot_be_served_is_refused(stream: bytes, status: int, text: bytes, closed: bool) -> None:
    world = SteppedHttp()
    transport = world.talk(stream)
    got_status, headers, body = answer(transport)
    assert got_status == status
    assert body.startswith(text)
    assert body.endswith(b"\n")
    assert transport.closed == closed
    assert (headers.get("connection") == "close") == closed
    assert world.requests == []
    if status == 405:
        assert headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("step", [1, 50, 10_000])
def test_a_head_over_the_limit_is_refused_however_it_was_split(step: int) -> None:
    world = SteppedHttp(limits=HttpLimits(head_bytes_max=200))
    transport = world.talk(GET.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"x" * 200 + b"\r\n\r\n"), step=step)
    assert answer(transport)[0] == 431
    assert transport.closed
    assert world.requests == []


def test_a_body_over_the_limit_is_refused() -> None:
    limits = HttpLimits(body_bytes_max=10)
    head = b"POST /echo HTTP/1.1\r\nHost: broker\r\nContent-Length: %d\r\n\r\n"
    assert answer(SteppedHttp(limits=limits).talk(head % 10 + b"x" * 10))[0] == 405
    twice = SteppedHttp(limits=limits).talk((head % 10 + b"x" * 10) * 2)
    assert [status for status, _headers, _body in answers(twice.taken, "POST", "POST")] == [405, 405]
    transport = SteppedHttp(limits=limits).talk(head % 11 + b"x" * 11)
    assert answer(transport)[0] == 413
    assert transport.closed


@pytest.mark.parametrize(
    ("version", "header", "closed"),
    [(b"1.1", b"", False), (b"1.1", b"Connection: close\r\n", True), (b"1.0", b"", True)],
)
def test_keep_alive(version: bytes, header: bytes, closed: bool) -> None:
    transport = SteppedHttp().talk(b"GET /echo HTTP/%s\r\nHost: broker\r\n%s\r\n" % (version, header))
    assert answer(transport)[0] == 200
    assert transport.closed == closed


def test_what_is_wrong_after_a_head_request_is_still_told() -> None:
    transport = SteppedHttp().talk(GET.replace(b"GET", b"HEAD") + b"nonsense\r\n\r\n")
    head, refusal = answers(transport.taken, "HEAD", "GET")
    assert head[0] == 200
    assert refusal[0] == 400
    assert refusal[2]


def test_a_target_with_scheme_and_host_is_its_path() -> None:
    world = SteppedHttp()
    assert answer(world.talk(GET.replace(b"/echo", b"http://broker/echo?x")))[2] == b"GET x"


def test_a_handler_that_fails_is_a_500_and_the_connection_stays(caplog: pytest.LogCaptureFixture) -> None:
    transport = SteppedHttp({"/fail": Mock(side_effect=ZeroDivisionError("secret"))}).talk(
        GET.replace(b"/echo", b"/fail") + GET
    )
    first, second = answers(transport.taken, "GET", "GET")
    assert first[::2] == (500, b"internal error\n")
    assert second[0] == 200
    assert "the handler of /fail failed" in caplog.text


def test_an_answer_in_pieces_leaves_room_for_others_between_them() -> None:
    piece = Mock(side_effect=[b"0", b"1", b"2", b"3", b"4", None])
    world = SteppedHttp({"/many": lambda _: Response(200, "text/plain", iter(piece, None))})
    connection, transport = world.connect()
    connection.data_received(GET.replace(b"/echo", b"/many"))
    for expected in range(5):
        assert piece.call_count == expected
        world.loop.run(rounds=1)
    world.loop.run()
    status, headers, body = answer(transport)
    assert (status, headers["transfer-encoding"], body) == (200, "chunked", b"01234")
    assert transport.reading


def test_an_answer_in_pieces_that_breaks_off_is_cut_not_ended(caplog: pytest.LogCaptureFixture) -> None:
    piece = Mock(side_effect=[b"half", RuntimeError()])
    world = SteppedHttp({"/broken": lambda _: Response(200, "text/plain", iter(piece, None))})
    transport = world.talk(GET.replace(b"/echo", b"/broken"))
    assert transport.aborted
    assert not transport.taken.endswith(b"0\r\n\r\n")
    assert "a response failed" in caplog.text


def test_a_client_that_does_not_read_gets_no_more_until_it_does() -> None:
    piece = Mock(side_effect=[b"x", b"x", b"x", None])
    world = SteppedHttp({"/many": lambda _: Response(200, "text/plain", iter(piece, None))})
    connection, transport = world.connect()
    connection.data_received(GET.replace(b"/echo", b"/many") + GET)
    connection.pause_writing()
    world.loop.run()
    assert not piece.called
    assert not transport.reading
    connection.resume_writing()
    world.loop.run(rounds=1)
    connection.pause_writing()
    world.loop.run()
    assert piece.call_count == 1
    connection.resume_writing()
    world.loop.run()
    assert [body for _status, _headers, body in answers(transport.taken, "GET", "GET")] == [b"xxx", b"GET "]


def test_a_client_that_vanishes_ends_the_answer_in_pieces() -> None:
    closed: list[str] = []

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("closed")

    world = SteppedHttp({"/endless": lambda _: Response(200, "text/plain", pieces())})
    connection, _transport = world.connect()
    connection.data_received(GET.replace(b"/echo", b"/endless"))
    world.loop.run(rounds=1)
    connection.connection_lost(None)
    world.loop.run()
    assert closed == ["closed"]
    assert world.acceptor.connections_open == 0


def test_a_client_that_stops_sending_still_gets_its_answers() -> None:
    world = SteppedHttp()
    connection, transport = world.connect()
    connection.data_received(GET + GET)
    keeps_open = connection.eof_received()
    world.loop.run()
    assert keeps_open
    assert len(answers(transport.taken, "GET", "GET")) == 2
    assert transport.closed


def test_a_client_that_stops_in_the_middle_of_a_request_is_told_so() -> None:
    world = SteppedHttp()
    connection, transport = world.connect()
    connection.data_received(GET[:-4])
    assert not connection.eof_received()
    assert answer(transport)[0] == 400
    assert transport.closed


def test_a_client_that_leaves_without_a_word_leaves_nothing() -> None:
    world = SteppedHttp()
    connection, transport = world.connect()
    assert not connection.eof_received()
    assert transport.closed
    assert not transport.taken
    connection.connection_lost(None)
    assert world.acceptor.connections_open == 0


def test_an_idle_connection_is_ended() -> None:
    world = SteppedHttp(limits=HttpLimits(idle_ms_max=100))
    connection, transport = world.connect()
    world.loop.now_ms += 60
    connection.data_received(GET)
    world.loop.run()
    world.loop.now_ms += 99
    world.acceptor.tick(world.loop.now_ms)
    assert not transport.closed
    world.loop.now_ms += 1
    world.acceptor.tick(world.loop.now_ms)
    assert transport.aborted


@pytest.mark.parametrize("more", [b"", b"GET /echo HTT"])
def test_a_closed_connection_whose_client_does_not_read_is_ended(more: bytes) -> None:
    """The system closes a socket only when the client has all that was written."""
    world = SteppedHttp(limits=HttpLimits(idle_ms_max=100, request_ms_max=50))
    connection, transport = world.connect()
    transport.client_reads = False
    connection.data_received(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + more)
    world.loop.run()
    assert transport.closed
    world.loop.now_ms += 99
    world.acceptor.tick(world.loop.now_ms)
    assert not transport.aborted
    world.loop.now_ms += 1
    world.acceptor.tick(world.loop.now_ms)
    assert transport.aborted


def test_a_request_sent_slowly_does_not_hold_the_connection() -> None:
    world = SteppedHttp(limits=HttpLimits(idle_ms_max=100))
    connection, transport = world.connect()
    for byte in GET[:10]:
        connection.data_received(bytes([byte]))
        world.loop.now_ms += 10
        world.acceptor.tick(world.loop.now_ms)
    assert transport.aborted


def test_one_more_connection_takes_the_place_of_the_one_that_waits_longest() -> None:
    world = SteppedHttp(limits=HttpLimits(connections_max=2))
    old, old_transport = world.connect()
    world.loop.now_ms += 1
    young, young_transport = world.connect()
    world.loop.now_ms += 1
    old.data_received(GET)  # now it is the other one that has waited for longest
    world.loop.run()
    new, new_transport = world.connect()
    assert [one.aborted for one in (old_transport, young_transport, new_transport)] == [False, True, False]
    young.data_received(GET)
    assert not young.eof_received()
    young.connection_lost(None)
    assert world.acceptor.connections_open == 2
    new.data_received(GET)
    world.loop.run()
    assert answer(new_transport)[0] == 200


def test_health_is_answered_while_others_read_nothing_of_their_answers() -> None:
    large = Route("/large", {"GET": lambda _: Response(200, "text/plain", iter([b"x"] * 9))})
    limits = HttpLimits(connections_max=3, spare_connections=2)
    world = SteppedHttp([large, *health_routes(lambda: None)], limits)
    busy = []
    for _ in range(3):
        connection, transport = world.connect()
        connection.data_received(b"GET /large HTTP/1.1\r\nHost: broker\r\n\r\n")
        connection.pause_writing()
        busy.append(transport)
    world.loop.run()
    for _ in range(5):
        assert answer(world.talk(b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n"))[0] == 200
        assert answer(world.talk(GET))[0] == 503
    assert not any(transport.closed for transport in busy)
    assert world.acceptor.connections_open <= 5


def test_a_spare_connection_becomes_a_regular_one_when_there_is_room() -> None:
    large = Route("/large", {"GET": lambda _: Response(200, "text/plain", iter([b"x"] * 9))})
    world = SteppedHttp([large], HttpLimits(connections_max=1))
    first, _ = world.connect()
    first.data_received(b"GET /large HTTP/1.1\r\nHost: broker\r\n\r\n")
    first.pause_writing()
    second, transport = world.connect()
    first.connection_lost(None)
    second.data_received(GET)
    world.loop.run()
    assert answer(transport)[0] == 200


@pytest.mark.parametrize(
    "start", [GET[:10], GET[:-1], b"POST /echo HTTP/1.1\r\nHost: broker\r\nContent-Length: 5\r\n\r\nhe"]
)
def test_a_request_that_does_not_come_to_its_end_is_given_up(start: bytes) -> None:
    """Also behind one that was answered; however often another byte comes."""
    for before in (b"", GET):
        world = SteppedHttp(limits=HttpLimits(request_ms_max=100, idle_ms_max=1_000_000))
        connection, transport = world.connect()
        if before:
            connection.data_received(before)
            world.loop.run()
        world.loop.now_ms += 1000
        for byte in start:
            connection.data_received(bytes([byte]))
        world.loop.now_ms += 99
        world.acceptor.tick(world.loop.now_ms)
        assert not transport.closed
        world.loop.now_ms += 1
        world.acceptor.tick(world.loop.now_ms)
        world.loop.run()
        assert answers(transport.taken, *["GET"] * (2 if before else 1))[-1][0] == 408
        assert transport.closed


def test_a_request_that_was_sent_ahead_has_its_time_from_its_turn_on() -> None:
    world = SteppedHttp(limits=HttpLimits(request_ms_max=100))
    connection, transport = world.connect()
    connection.data_received(GET + GET[:10])
    world.loop.run()
    world.loop.now_ms += 100
    world.acceptor.tick(world.loop.now_ms)
    world.loop.run()
    assert [status for status, _, _ in answers(transport.taken, "GET", "GET")] == [200, 408]


def test_stop_closes_what_is_open_and_refuses_what_comes() -> None:
    world = SteppedHttp()
    _connection, transport = world.connect()
    world.acceptor.stop()
    assert transport.closed
    assert answer(world.connect()[1])[0] == 503


def test_health_tells_the_reason() -> None:
    reasons: list[str | None] = ["no port is open for STOMP", None, "the broker is stopping"]
    routes = health_routes(lambda: reasons[0])
    world = SteppedHttp(routes)
    ready = b"GET /health/ready HTTP/1.1\r\nHost: broker\r\n\r\n"
    seen = []
    while reasons:
        status, headers, body = answer(world.talk(ready))
        assert headers["content-type"] == "application/json"
        seen.append((status, json.loads(body)))
        assert answer(world.talk(ready.replace(b"ready", b"live")))[0] == 200
        reasons.pop(0)
    assert seen == [
        (503, {"status": "DOWN", "reason": "no port is open for STOMP"}),
        (200, {"status": "UP"}),
        (503, {"status": "DOWN", "reason": "the broker is stopping"}),
    ]


@pytest.mark.parametrize("path", [b"/metrics", b"/metrics/"])
def test_metrics_are_served(path: bytes) -> None:
    broker = broker_of(*(queue_config(f"q{number}", "orders") for number in range(1_000)), name="test-broker")
    routes = metrics_routes(exporter_of(broker))
    request = b"GET %s HTTP/1.1\r\nHost: broker\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n" % path
    status, headers, body = answer(SteppedHttp(routes).talk(request))
    assert (status, headers["content-type"].split(";")[0]) == (200, "application/openmetrics-text")
    assert b'artemis_message_count{address="orders",broker="test-broker",queue="q999"} 0.0\n' in body
    assert body.endswith(b"# EOF\n")
    status, headers, body = answer(SteppedHttp(routes).talk(request.replace(b"GET", b"HEAD")), "HEAD")
    assert (status, headers["content-type"].split(";")[0], body) == (200, "application/openmetrics-text", b"")


def test_h11_is_not_imported_before_the_first_connection() -> None:
    program = (
        "import sys; from artemis_py.server.http.acceptor import HttpAcceptor;"
        "from artemis_py.server.http.ports import connect;"
        "import artemis_py.server.http.monitoring_routes;"
        "s = HttpAcceptor([], now_ms=lambda: 0, call_soon=print, call_threadsafe=print);"
        "before = 'h11' in sys.modules; connect(s);"
        "print(before, 'h11' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
