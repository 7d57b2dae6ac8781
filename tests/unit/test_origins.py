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

    def refusal(**headers: str) -> str | None:
        return strict.refusal(Request("GET", "/console/jolokia", headers={"host": "broker:8161", **headers}))

    assert "strict-checking in jolokia-access.xml (line 3) wants the header Origin" in str(refusal())
    assert refusal(origin="http://whoever") is None, "that was checked before"
    assert refusal(referer="http://ui.example/page?x") is None
    assert refusal(referer="http://broker:8161/console/") is None
    assert "pages of 'http://evil.example' may not use Jolokia" in str(refusal(referer="http://evil.example/"))
    assert "may not use Jolokia" in str(refusal(referer="http://[bad"))
    loose = Origins(WebAccess(origins=("http://ui.example",)))
    assert loose.refusal(Request("GET", "/console/jolokia")) is None
