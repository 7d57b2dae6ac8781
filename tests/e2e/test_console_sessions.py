"""Sessions of Artemis' console, over HTTP: they end when the login that began them no longer holds."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_process import LOOPBACK, WAIT_S, BrokerProcess
from tests.e2e.secured import basic
from tests.e2e.test_artemis_console import _BOOTSTRAP, _BROKER, _LOGIN

pytestmark = pytest.mark.e2e

USERS = "ann = ann's secret\nbob = bob's secret\n"
ROLES = "amq = ann,bob\n"


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """The configuration of an instance with a console that has one page."""
    etc = tmp_path / "shop" / "etc"
    etc.mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "console.war", "w") as war:
        war.writestr("index.html", "the console")
    files = {
        "broker.xml": _BROKER,
        "bootstrap.xml": _BOOTSTRAP.format(folder=etc.parent, war=tmp_path / "console.war"),
        "login.config": _LOGIN.replace("required\n", "required reload=true\n"),
        "artemis-users.properties": USERS,
        "artemis-roles.properties": ROLES,
    }
    for name, text in files.items():
        (etc / name).write_text(text)
    return etc


@pytest.fixture
def broker(etc: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    one = BrokerProcess(["run", str(etc.parent)], tmp_path / "broker.log")
    try:
        one.await_ready()
        yield one
        assert one.stop() == 0, one.said
        assert "Traceback" not in one.said
    finally:
        one.kill()


def status_of(broker: BrokerProcess, path: str, cookie: str = "", sent: object = None) -> tuple[int, str]:
    """The status of an answer, and the cookie that it gives."""
    body = None if sent is None else json.dumps(sent).encode()
    url = f"http://{LOOPBACK}:{broker.ports['web']}/console/{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Cookie": cookie}), timeout=WAIT_S) as answer:
            return answer.status, answer.headers.get("Set-Cookie", "").partition(";")[0]
    except urllib.error.HTTPError as error:
        return error.code, ""


def log_in(broker: BrokerProcess, user: str, password: str | None = None) -> str:
    status, cookie = status_of(broker, "auth/login", "", {"username": user, "password": password or f"{user}'s secret"})
    assert status == 200
    assert status_of(broker, "user", cookie)[0] == 200
    return cookie


def ends(broker: BrokerProcess, cookie: str) -> None:
    broker.eventually("an ended session", lambda: status_of(broker, "user", cookie)[0], lambda status: status == 403)


ACCESS = """<restrict><cors><allow-origin>http://ui.example</allow-origin><strict-checking/></cors></restrict>"""


def headers_of(broker: BrokerProcess, method: str, **headers: str) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer of Jolokia."""
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    url = f"http://{LOOPBACK}:{broker.ports['web']}/console/jolokia/version"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, None, sent, method=method), timeout=WAIT_S) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers)


def test_pages_of_others_use_jolokia_where_the_instance_lets_them(etc: Path, tmp_path: Path) -> None:
    """A browser asks first, without a login; what it asks for has one."""
    (etc / "jolokia-access.xml").write_text(ACCESS)
    ui, login = "http://ui.example", basic("ann", "ann's secret")
    asks = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "Authorization, X-Evil"}
    broker = BrokerProcess(["run", str(etc.parent)], tmp_path / "broker.log")
    try:
        broker.await_ready()
        status, headers = headers_of(broker, "OPTIONS", Origin=ui, **asks)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, ui)
        assert headers["Access-Control-Allow-Headers"] == "authorization"
        assert "Access-Control-Allow-Credentials" not in headers
        assert headers_of(broker, "OPTIONS", Origin="http://evil.example", **asks)[0] == 403
        assert headers_of(broker, "GET", Origin=ui)[0] == 401
        status, headers = headers_of(broker, "GET", Origin=ui, Authorization=login)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, ui)
        assert headers_of(broker, "GET", Origin="http://evil.example", Authorization=login)[0] == 403
        assert headers_of(broker, "GET", Authorization=login)[0] == 403, "strict-checking wants to know the page"
        own = f"http://{LOOPBACK}:{broker.ports['web']}"
        assert headers_of(broker, "GET", Referer=f"{own}/console/", Authorization=login)[0] == 200
        assert headers_of(broker, "GET", Origin=own, Authorization=login)[0] == 200
    finally:
        broker.stop()
        broker.kill()


def test_a_session_ends_with_its_login(broker: BrokerProcess, etc: Path) -> None:
    """A new password, other roles, or no such user any more; others go on. A file that makes no sense ends nobody's."""
    ann, bob = log_in(broker, "ann"), log_in(broker, "bob")
    users, roles = etc / "artemis-users.properties", etc / "artemis-roles.properties"
    users.write_text(USERS.replace("ann's secret", "another"))
    ends(broker, ann)
    assert status_of(broker, "user", bob)[0] == 200
    assert status_of(broker, "auth/login", "", {"username": "ann", "password": "ann's secret"})[0] == 403
    ann = log_in(broker, "ann", "another")
    roles.write_text("amq = ann\nview = bob\n")
    ends(broker, bob)
    assert status_of(broker, "user", ann)[0] == 200
    bob = log_in(broker, "bob")
    roles.write_text("amq = \\u12")
    users.write_text("bob = bob's secret\n")
    roles.write_text("amq = ann\nview = bob\n")
    ends(broker, ann)
    assert status_of(broker, "user", bob)[0] == 200
    assert "sessions of the console that ended because their login has changed: 1" in broker.said
