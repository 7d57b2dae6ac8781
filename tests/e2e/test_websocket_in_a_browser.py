"""@stomp/stompjs in a real Chromium, on pages of a server of this machine; and the page of docs/security.md."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.foreign_clients import PROGRAMS, node_with
from tests.kit.browser import Browser, chromium, why_no_browser
from tests.kit.packages import Absent
from tests.kit.process import LOOPBACK, STOMP, BrokerProcess, configuration, eventually, for_the_module, running
from tests.kit.sources import ROOT
from tests.kit.web_server import serving

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]

PAGE = PROGRAMS / "web" / "page.html"
CHECKS = re.findall(r"^  (?:async )?(\w+)(?:\(\) \{|: \(\) =>)", PAGE.read_text("utf-8"), re.M)
(GREET,) = re.findall(r"<!-- page: greet.html -->\n```html\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.S)
LIBRARY = re.compile(r"https://cdn\.jsdelivr\.net/npm/@stomp/stompjs@([\d.]+)/bundles/(stomp\.umd\.min\.js)")
WAIT_S = 120.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder of the pages, with the library beside them, and where they are served."""
    try:
        _, modules = node_with(PROGRAMS / "web")
    except Absent as absent:
        pytest.skip(f"no @stomp/stompjs: {absent}")
    folder = tmp_path_factory.mktemp("pages")
    for file in (PAGE, *(modules / "@stomp" / "stompjs" / "bundles").glob("stomp.umd*.js")):
        shutil.copy(file, folder)
    server = ThreadingHTTPServer((LOOPBACK, 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    with serving(server):
        yield folder, f"http://{LOOPBACK}:{server.server_port}"


@pytest.fixture(scope="module")
def broker(site: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    acceptors = {
        "stomp": f"{STOMP};allowedOrigins=https://shop.example,{site[1]}",
        "wide": f"{STOMP};webSocketMaxFramePayloadLength=4194304",
        "closed": f"{STOMP};allowedOrigins=https://shop.example",
    }
    with running(configuration(acceptors), tmp_path_factory.mktemp("browsed")) as process:
        yield process


browser = for_the_module(chromium)


@pytest.fixture(scope="module")
def verdicts(browser: Browser, site: tuple[Path, str], broker: BrokerProcess) -> dict[str, str]:
    """What the page found."""
    ports = {"port": broker.port, "wide": broker.ports["wide"], "closed": broker.ports["closed"]}
    browser.go(f"{site[1]}/page.html?" + "&".join(f"{name}={port}" for name, port in ports.items()))
    found = eventually("the verdicts", lambda: browser.run("return window.verdicts ?? null"), bool, WAIT_S)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_in_chromium(verdicts: dict[str, str], check: str) -> None:
    assert verdicts[check] == "ok"


def test_no_check_is_forgotten(verdicts: dict[str, str]) -> None:
    assert set(verdicts) == set(CHECKS)


def test_the_page_of_the_documents(browser: Browser, site: tuple[Path, str], broker: BrokerProcess) -> None:
    """As it stands there, but for the port, and the library from this machine in the version that it names."""
    folder, origin = site
    library = LIBRARY.search(GREET)
    assert library is not None
    manifest = (PROGRAMS / "web" / "package.json").read_text("utf-8")
    assert f'"@stomp/stompjs": "{library[1]}"' in manifest
    page = LIBRARY.sub(library[2], GREET).replace("localhost:61613", f"{LOOPBACK}:{broker.port}")
    (folder / "greet.html").write_text(page, "utf-8")
    browser.go(f"{origin}/greet.html")
    eventually(
        "what the page says",
        lambda: browser.run("return document.getElementById('said').textContent"),
        lambda said: said == "received hello",
        WAIT_S,
    )
