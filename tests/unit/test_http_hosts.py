"""Which names the log is read under, and for which web pages."""

from __future__ import annotations

import pytest

from artemis_py.server.http.monitoring_routes import health_routes
from artemis_py.server.http.origins import Hosts
from artemis_py.server.http.requests import Request, parse_json
from tests.kit.stepped_http import SteppedHttp, answer


def allowed(hosts: Hosts, host: str | None, origin: str | None = None, authority: str | None = None) -> bool:
    headers = {name: value for name, value in (("host", host), ("origin", origin)) if value is not None}
    return hosts.refusal(Request("GET", "/log", headers=headers, authority=authority)) is None


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST:8161", "localhost.", "127.0.0.1", "127.0.0.1:8161", "10.1.2.3:80", "[::1]:8161",
        "[::1]", "[fe80::1%eth0]:8161", "broker", "Broker:8161", "broker.example.org:1", None,
    ],
)  # fmt: skip
def test_these_names_may_be_used(host: str | None) -> None:
    assert allowed(Hosts(["broker", "Broker.Example.org:8161"]), host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8161", "localhost.evil.example", "127.0.0.1.evil.example", "broker", "0x7f.1",
        "2130706433", "", ":8161", "[evil]", "a@localhost", "localhost@evil.example", "localhost, evil.example",
    ],
)  # fmt: skip
def test_others_may_not(host: str) -> None:
    assert not allowed(Hosts(), host)
    assert allowed(Hosts(["*"]), host)


def test_a_target_with_a_host_counts_as_one() -> None:
    assert not allowed(Hosts(), "localhost", authority="evil.example")
    assert allowed(Hosts(), "localhost", authority="127.0.0.1:8161")


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("http://localhost:8161", True), ("http://tools.example.org", True), ("https://tools.example.org:444", True),
        ("http://localhost:3000", False), ("http://6.6.6.6", False), ("null", False), ("http://evil.example", False),
        ("https://localhost:8161", False), ("", False), ("http://localhost:8161.evil.example", False),
    ],
)  # fmt: skip
def test_pages_of_others_may_not(origin: str, is_allowed: bool) -> None:
    assert allowed(Hosts(["tools.example.org"]), "localhost:8161", origin) == is_allowed


def test_the_host_of_the_acceptor_is_a_name_and_no_leave_for_other_ports() -> None:
    hosts = Hosts(own="broker.lan")
    assert allowed(hosts, "broker.lan:8161")
    assert allowed(hosts, "broker.lan:8161", "http://broker.lan:8161")
    assert not allowed(hosts, "broker.lan:8161", "http://broker.lan:3000")
    assert not allowed(Hosts(own="127.0.0.1"), "localhost:8161", "http://127.0.0.1:3000")
    assert allowed(Hosts(["localhost"]), "localhost:8161", "http://localhost:3000")


def test_what_is_refused_says_what_to_do_and_open_routes_are_not() -> None:
    world = SteppedHttp(health_routes(lambda: None))
    refused = b"GET %s HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n"
    status, _, text = answer(world.talk(refused % b"/echo"))
    assert (status, b"allowedHosts" in text, b"evil.example" in text) == (403, True, True)
    assert world.requests == []
    assert answer(world.talk(refused % b"/health/live"))[0] == 200
    absolute = b"GET http://evil.example/echo HTTP/1.1\r\nHost: %s\r\n\r\n"
    assert answer(world.talk(absolute % b"broker"))[0] == 400
    assert answer(world.talk(absolute % b"evil.example"))[0] == 403
    assert answer(world.talk(b"GET http://evil.example?a=/echo HTTP/1.1\r\nHost: evil.example\r\n\r\n"))[0] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 33 + b"]" * 33, "nested more than 32 levels deep"),
        (b"[" * 60_000, "nested more than 32 levels deep"),
        (b"9" * 5_000, "a number has more than 4300 digits"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b"\xff", "can't decode"),
        (b"", "Expecting value"),
    ],
)
def test_json_that_is_not_read_is_refused_in_words(body: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        parse_json(body)
    assert "sys." not in str(refused.value)
