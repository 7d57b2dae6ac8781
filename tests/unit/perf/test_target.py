from __future__ import annotations

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.link import Target, parse_header, parse_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("stomp://localhost:61613", ("localhost", 61613)),
        ("tcp://10.0.0.1:1", ("10.0.0.1", 1)),
        ("stomp://[::1]:99/", ("::1", 99)),
        ("stomp://host", ("host", 61613)),
        ("stomps://host", ("host", 61613)),
    ],
)
def test_urls(url: str, expected: tuple[str, int]) -> None:
    assert parse_url(url)[:2] == expected


@pytest.mark.parametrize(
    "url",
    ["localhost:61613", "http://a:1", "stomp://", "stomp://a:x", "stomp://a:99999", "stomp://a:1/q", "stomp://u:p@a:1"],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(PerfError):
        parse_url(url)


def test_a_target_shows_its_url() -> None:
    assert Target("::1", 5).url == "stomp://[::1]:5"
    assert Target("a", 5).url == "stomp://a:5"


def test_headers() -> None:
    assert parse_header("a.b:c:d") == ("a.b", "c:d")
    for text in ("", "a", ":a", "a:b\nc:d"):
        with pytest.raises(PerfError):
            parse_header(text)
