"""Which web pages of other origins may use an acceptor, and what the answers say of it."""

from __future__ import annotations

import pytest

from artemis_py.server.http.origins import Cors
from artemis_py.server.http.requests import Request, text_response

LISTED = Cors(["https://Ops.example:443", "http://10.0.0.7:8161", "http://[::1]"])
PREFLIGHT = {"access-control-request-method": "POST"}


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("https://ops.example", True), ("http://10.0.0.7:8161", True), ("http://[::1]", True),
        ("http://ops.example", False), ("https://ops.example:8443", False), ("http://10.0.0.7", False),
        ("https://ops.example.evil.example", False), ("null", False), ("*", False), ("", False),
    ],
)  # fmt: skip
def test_origins_are_equal_or_refused(origin: str, is_allowed: bool) -> None:
    asked = Request("OPTIONS", "/api/queues", headers={"origin": origin, **PREFLIGHT})
    assert LISTED.allows(origin) == is_allowed
    assert (LISTED.preflight(asked) is not None) == is_allowed
    headers = dict(LISTED.marked(text_response(200, "x"), asked).headers)
    assert headers.get("Access-Control-Allow-Origin") == (origin if is_allowed else None)
    assert headers["Vary"] == "Origin"


def test_only_a_preflight_is_answered() -> None:
    headers = {"origin": "https://ops.example"}
    assert LISTED.preflight(Request("OPTIONS", "/api", headers=headers)) is None
    assert LISTED.preflight(Request("POST", "/api", headers={**headers, **PREFLIGHT})) is None


def test_nothing_is_allowed_by_default() -> None:
    request = Request("GET", "/api", headers={"origin": "https://ops.example"})
    assert not Cors().allows("https://ops.example")
    assert not Cors().allows("")
    assert Cors().marked(text_response(200, "x"), request).headers == ()


def test_what_a_route_says_of_the_origin_stays() -> None:
    request = Request("GET", "/api/jolokia", headers={"origin": "https://ops.example"})
    own = ("Access-Control-Allow-Origin", "https://ops.example")
    names = [name for name, _ in LISTED.marked(text_response(200, "x", (own,)), request).headers]
    assert names.count("Access-Control-Allow-Origin") == 1
