"""The web pages that jolokia-access.xml lets use Jolokia."""

from __future__ import annotations

import pytest

from artemis_py.config.tables.declarations import Origin, WebAccess
from artemis_py.server.http.jolokia_routes import Origins
from artemis_py.server.http.requests import Request


@pytest.mark.parametrize(
    ("pattern", "allowed", "others"),
    [
        (
            "*://localhost*",
            ["http://localhost", "https://localhost:8161", "HTTP://LOCALHOST:80"],
            ["http://localhost.evil.example", "http://localhost:80.evil.example", "http://evil.example", "null"],
        ),
        ("https://*.shop.example", ["https://a.shop.example"], ["http://a.shop.example", "https://shop.example"]),
        ("http://one:8080", ["http://one:8080"], ["http://one", "http://one:80801"]),
        ("http://one:*", ["http://one:1", "http://one:65535"], ["http://one"]),
        ("*", ["http://any.example"], []),
    ],
)
def test_an_origin_is_let_in(pattern: str, allowed: list[str], others: list[str]) -> None:
    origins = Origins(WebAccess(origins=(pattern,)))
    assert [one for one in allowed if not origins.allows(one)] == []
    assert [one for one in others if origins.allows(one)] == []
    assert not Origins(WebAccess()).allows(allowed[0])


def test_strict_checking_wants_a_page() -> None:
    place = Origin("jolokia-access.xml", 3)
    strict = Origins(WebAccess(origins=("http://ui.example",), is_strict=True, origin=place))

    for headers, said in (
        ({}, "strict-checking in jolokia-access.xml (line 3) wants the header Origin"),
        ({"origin": "http://whoever"}, "None"),  # that was checked before
        ({"referer": "http://ui.example/page?x"}, "None"),
        ({"referer": "http://broker:8161/console/"}, "None"),
        ({"referer": "http://evil.example/"}, "pages of 'http://evil.example' may not use Jolokia"),
        ({"referer": "http://[bad"}, "may not use Jolokia"),
    ):
        request = Request("GET", "/console/jolokia", headers={"host": "broker:8161", **headers})
        assert said in str(strict.refusal(request)), headers
    loose = Origins(WebAccess(origins=("http://ui.example",)))
    assert loose.refusal(Request("GET", "/console/jolokia")) is None
