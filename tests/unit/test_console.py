"""The console's files: their size, what they may not do, and how they are sent."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Final

import pytest

from artemis_py.core.queue_states import BAD, CALM, MIND, SEVERITY
from artemis_py.server.http.console import CONSOLE, PATH, POLICY, console_routes
from artemis_py.server.http.requests import Request, Response
from tests.kit.documents import load_core

SENT_BYTES_MAX: Final = 90_500
READ_BYTES_MAX: Final = 234_000
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "console.md"
FILES: Final = [file for file in sorted(CONSOLE.rglob("*")) if file.is_file()]
OWN: Final = [file for file in FILES if "vendor" not in file.parts]
VENDORED: Final = {"uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE.txt"}
FORBIDDEN: Final = {
    "makes markup of text": re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|\$html"
    ),
    "carries out text": re.compile(r"\beval\(|new Function\(|setTimeout\(\s*[\"'`]|javascript:"),
    "has a handler or a style in markup": re.compile(r"<[^>]*\s(on[a-z]+|style)\s*="),
    "is from elsewhere": re.compile(r"(?:https?:)?//(?!127\.0\.0\.1|www\.w3\.org/2000/svg)[a-z0-9-]+\.[a-z]{2,}"),
    "is remembered by cookies": re.compile(r"document\.cookie"),
}


def _get(path: str, query: str = "", **headers: str) -> Response:
    route = next(one for one in console_routes() if one.path == path)
    answer = route.handlers["GET"](Request("GET", path, query, headers))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_what_a_file_may_not_do(file: Path) -> None:
    text = file.read_text("utf-8")
    assert [what for what, pattern in FORBIDDEN.items() if pattern.search(text)] == []


def test_the_rules_find_what_they_forbid() -> None:
    bad = {
        "makes markup of text": "it.innerHTML = text",
        "carries out text": "setTimeout('go()', 1)",
        "has a handler or a style in markup": '<p style="color: red">',
        "is from elsewhere": 'import "https://cdn.example/x.js"',
        "is remembered by cookies": "document.cookie = user",
    }
    assert {what for what, pattern in FORBIDDEN.items() if pattern.search(bad[what])} == set(FORBIDDEN)


def test_only_the_chart_library_is_of_others() -> None:
    assert {file.name for file in FILES if "vendor" in file.parts} == VENDORED
    assert "MIT License" in (CONSOLE / "vendor" / "uPlot.LICENSE.txt").read_text("utf-8")


def test_it_is_small() -> None:
    """Without the charts, as it is sent and as it is."""
    sent = [
        _get(route.path, **{"accept-encoding": "gzip"}).body
        for route in console_routes()
        if "/vendor/" not in route.path
    ]
    assert sum(len(body) for body in sent if isinstance(body, bytes)) <= SENT_BYTES_MAX
    assert sum(file.stat().st_size for file in OWN) <= READ_BYTES_MAX


def test_the_page_is_asked_for_again_and_its_files_are_kept() -> None:
    page = _get(PATH)
    assert (dict(page.headers)["Cache-Control"], dict(page.headers)["Content-Security-Policy"]) == ("no-cache", POLICY)
    assert isinstance(page.body, bytes)
    names = re.findall(r'(?:href|src)="([0-9a-f]{16}/[^"]+)"', page.body.decode())
    assert {f"{PATH}{name}" for name in names} < {route.path for route in console_routes()}
    assert len(names) >= len([file for file in OWN if file.suffix in (".js", ".css")]), "a browser asks for all at once"
    for name in names:
        assert dict(_get(f"{PATH}{name}").headers)["Cache-Control"] == "public, max-age=31536000, immutable"


def test_what_a_browser_has_is_not_sent_again() -> None:
    for accepted in ("", "gzip, br"):
        first = _get(PATH, **{"accept-encoding": accepted})
        again = _get(PATH, **{"accept-encoding": accepted, "if-none-match": dict(first.headers)["ETag"]})
        assert (first.status, again.status) == (200, 304)
    assert _get(PATH, **{"if-none-match": '"other"'}).status == 200


def test_a_packed_file_is_the_same_file() -> None:
    plain, packed = _get(PATH), _get(PATH, **{"accept-encoding": "gzip"})
    assert isinstance(packed.body, bytes)
    assert dict(packed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert dict(plain.headers)["ETag"] != dict(packed.headers)["ETag"]


def test_another_version_has_other_paths(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("{version} {modules}")
    (tmp_path / "theme.js").write_text("1")
    before = {route.path for route in console_routes(folder=tmp_path)}
    (tmp_path / "theme.js").write_text("2")
    after = {route.path for route in console_routes(folder=tmp_path)}
    assert before & after == {PATH, "/", "/ui", "/console", "/console/"}


def test_the_page_names_the_broker_as_text() -> None:
    page = next(route for route in console_routes('my "<b>"') if route.path == PATH)
    answer = page.handlers["GET"](Request("GET", PATH))
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    assert b'data-broker="my &quot;&lt;b&gt;&quot;"' in answer.body
    assert dict(answer.headers)["ETag"] != dict(_get(PATH).headers)["ETag"], "another broker, another page"


def test_the_page_has_the_brokers_of_the_configuration() -> None:
    routes = console_routes("one", ["http://Two.example:8161", "https://three.example:443", 'http://"x'])
    answer = next(route for route in routes if route.path == PATH).handlers["GET"](Request("GET", PATH))
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    assert b'data-brokers="http://two.example:8161 https://three.example http://&quot;x"' in answer.body
    assert b"{brokers}" not in answer.body


def test_the_acceptors_of_the_document_are_valid() -> None:
    examples = re.findall(r"```xml\n(<acceptor .*?)\n```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (allows,), (lists,) = (load_core(f"<acceptors>{one}</acceptors>").acceptors for one in examples)
    assert allows.list_param("allowedOrigins") == ("http://broker1.example:8161",)
    assert lists.list_param("consoleBrokers") == ("http://broker2.example:8161", "http://broker3.example:8161")
    assert [one.protocols for one in (allows, lists)] == [("HTTP",), ("HTTP",)]


@pytest.mark.parametrize("path", ["/", "/ui", "/console", "/console/"])
def test_other_paths_lead_there(path: str) -> None:
    answer = _get(path)
    assert (answer.status, dict(answer.headers)["Location"]) == (302, PATH)
    assert dict(_get(path, query="code=a&state=b").headers)["Location"] == f"{PATH}?code=a&state=b"


def test_the_states_of_queues_are_those_of_the_broker() -> None:
    """Each word has a colour, which says how bad it is."""
    text = (CONSOLE / "js" / "states.js").read_text("utf-8")
    looks = {"bad": BAD, "warn": MIND, "": CALM, "good": CALM}
    said = re.findall(r'^  "?([a-z-]+)"?: \["([a-z]*)", "', text, re.MULTILINE)
    assert {word: looks[look] for word, look in said} == SEVERITY
