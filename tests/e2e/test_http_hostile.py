"""What strangers send to the HTTP port: every answer is one, none is the broker's own failure, and health goes on."""

from __future__ import annotations

import json
import random
import socket
from functools import partial

import pytest

from tests.kit.http import exchanged
from tests.kit.process import DAYS, LOOPBACK, WAIT_S, BrokerProcess, for_the_module, storing

pytestmark = pytest.mark.e2e

CURSOR = b"/log/cursors/c"
SLOW = 130


broker = for_the_module(partial(storing, kept=DAYS))


def said_to(broker: BrokerProcess, data: bytes) -> tuple[int, bytes]:
    """The status and the rest of what is answered to these bytes, after which the client says no more."""
    got = exchanged(broker.ports["http"], data)
    assert got.startswith(b"HTTP/1.1 "), (data[:200], got[:200])
    return int(got[9:12]), got.partition(b"\r\n\r\n")[2]


def request(method: bytes, path: bytes, body: bytes = b"", *headers: bytes, host: bytes = b"localhost") -> bytes:
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: " + host, *headers]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.mark.parametrize("path", [b"/metrics", b"/health/live", b"/health/ready"])
def test_metrics_and_health_have_any_name(broker: BrokerProcess, path: bytes) -> None:
    assert said_to(broker, request(b"GET", path, host=b"broker:8161"))[0] == 200


@pytest.mark.parametrize("start", [b"", b"GET /log HTTP/1.1\r\nHost: x\r\n", request(b"PUT", CURSOR, b"x" * 99)[:-50]])
def test_slow_clients_do_not_keep_anybody_from_health(broker: BrokerProcess, start: bytes) -> None:
    slow = [socket.create_connection((LOOPBACK, broker.ports["http"]), WAIT_S) for _ in range(SLOW)]
    try:
        for client in slow:
            try:
                client.sendall(start)
            except OSError:
                continue  # it had to make room
        for _ in range(5):
            assert said_to(broker, request(b"GET", b"/health/ready"))[0] == 200
            assert said_to(broker, request(b"GET", b"/log"))[0] == 200
    finally:
        for client in slow:
            client.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000, b'{"lsn":' * 9_000, b"[" * 30_000 + b"]" * 30_000, b'{"lsn":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"lsn":' + b"[" * 40 + b"]" * 40 + b"}", b"", b"\xff\xfe", b"null", b"NaN", b'{"lsn": NaN}', b'{"lsn": -1}',
        b'{"lsn": 1e400}', b'{"lsn": ' + b"9" * 60_000 + b"}", b'{"lsn": 0, "ttl_s": Infinity}', b'{"lsn": true}',
        b'{"lsn": 0, "owner": "\\ud800"}', b'{"\\ud800": 0}', b'{"lsn": 0, "owner": 1}', b'{"lsn": 0, "x": 0}',
        b'{"lsn": "' + b"x" * 60_000 + b'"}', b'{"lsn": 0, "ttl_s": "1"}', b'"' + b'\\"' * 30_000,
    ],
    ids=range(22),
)  # fmt: skip
def test_json_that_is_no_cursor_is_a_400(broker: BrokerProcess, body: bytes) -> None:
    status, text = said_to(broker, request(b"PUT", CURSOR, body))
    assert (status, len(text) < 500) == (400, True), text
    assert text.decode().isprintable() or text.decode().rstrip("\n").isprintable()


def test_a_cursor_keeps_any_text_as_its_owner(broker: BrokerProcess) -> None:
    owner = "\x1b[31m\n\r\x00\u202e"
    status, _ = said_to(broker, request(b"PUT", CURSOR, json.dumps({"lsn": 0, "owner": owner}).encode()))
    assert status == 201
    assert json.loads(said_to(broker, request(b"GET", CURSOR))[1])["owner"] == owner
    assert said_to(broker, request(b"DELETE", CURSOR))[0] == 200


def test_no_input_is_the_broker_s_own_failure(broker: BrokerProcess) -> None:
    """Requests with parts exchanged, cut and multiplied at random: no answer is a 500."""
    chance = random.Random(8161)
    parts = [
        b"/log", b"/log?after_lsn=", b"/log/segments/", b"/log/bodies/", b"/log/cursors/", b"/health/live", b"%",
        b"%00", b"%ff", b"%2e%2e/", b"..", b"//", b"?", b"&", b"=", b"9" * 30, b"1", b"-1", b"\xff", b"\x1b[31m",
        b"%0d%0a", b"#", b"after_lsn=1&after_lsn=x", b"*", b"http://", b"[::1", b"{name}", b"a" * 20_000, b" ",
        b"\xd9\xa1",
    ]  # fmt: skip
    headers = [
        b"Range: bytes=0-", b"Range: bytes=-9999999999999999999", b"Range: bytes=\xb2-", b"Host: localhost",
        b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"Expect: x",
        b"Expect: 100-continue", b"Accept: \xff", b"Connection: upgrade", b"Upgrade: h2c", b": x", b"X",
        b"Origin: \x01", b"Content-Type: application/json", b"Content-Length: 3",
    ]  # fmt: skip
    methods = [b"GET", b"PUT", b"DELETE", b"HEAD", b"POST", b"OPTIONS", b"CONNECT", b"TRACE", b"G(T", b"\x00"]
    seen: set[int] = set()
    for _ in range(600):
        path = chance.choice(parts[:6]) + b"".join(chance.choices(parts, k=chance.randrange(3)))
        chosen = chance.sample(headers, chance.choice([0, 0, 1, 3]))
        body = chance.choice([b"", b"0\r\n\r\n", b"zz\r\n", b"{}\x00"])
        data = request(chance.choice([b"GET", *methods]), path, b"", *chosen) + body
        cut = chance.randrange(1, len(data)) if chance.random() < 0.1 else len(data)
        status, text = said_to(broker, data[:cut])
        assert status < 500 or status in (501, 503), (data[:cut], text)
        assert status < 400 or b"\x1b" not in text
        seen.add(status)
    assert {200, 400, 404, 405} <= seen, seen
