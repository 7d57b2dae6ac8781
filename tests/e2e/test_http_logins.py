"""Who may use which route of a real broker where users log in, and what a stranger can do to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.certificates import PASSWORD, Authority
from tests.kit.forks import run_text
from tests.kit.http import HttpClient, exchanged
from tests.kit.process import HTTP, LOOPBACK, WAIT_S, BrokerProcess, eventually
from tests.kit.secured import USERS, basic, secured_broker
from tests.kit.tls import trusting, uri

pytestmark = pytest.mark.e2e

WHO: Final[dict[str, str | None]] = {
    "nobody": None,
    "wrong": basic("ann", "wrong"),
    "stranger": basic("zoe", "secret"),
    "worker": basic("eve"),
    "viewer": basic("bob"),
    "editor": basic("ann"),
}
SHUT: Final = (401, 401, 401, 403, 200, 200)
EDITED: Final = (401, 401, 401, 403, 403, 201)
TABLE: Final = [
    ("GET", "/metrics", (200,) * 6),
    ("GET", "/health/ready", (200,) * 6),
    ("GET", "/health/live", (200,) * 6),
    ("GET", "/memory", SHUT),
    ("HEAD", "/memory", SHUT),
    ("GET", "/api/queues", SHUT),
    ("GET", "/api/queues/jobs", SHUT),
    ("POST", "/api/queues/jobs/resume", (401, 401, 401, 403, 403, 200)),
    ("GET", "/api/openapi.json", SHUT),
    ("GET", "/log", SHUT),
    ("GET", "/log/segments/7", (401, 401, 401, 403, 404, 404)),
    ("GET", "/log/segments/7/places", (401, 401, 401, 403, 404, 404)),
    ("GET", "/log/bodies/7", (401, 401, 401, 403, 404, 404)),
    ("GET", "/log/cursors", SHUT),
    ("PUT", "/log/cursors/c", EDITED),
    ("GET", "/log/cursors/c", SHUT),
    ("DELETE", "/log/cursors/c", (401, 401, 401, 403, 403, 200)),
    ("POST", "/log", (405,) * 6),
    ("OPTIONS", "/log", (405,) * 6),
    ("TRACE", "/log", (405,) * 6),
    ("GET", "/ui/", (200,) * 6),
    ("POST", "/ui/", (405,) * 6),
    ("GET", "/nothing", (404,) * 6),
]
"""Each route, and its statuses for these clients in order."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("secured")
    shut = f"{HTTP};openWithoutLogin=none"
    with secured_broker(folder, shut=shut, health=f"{HTTP};openWithoutLogin=health") as one:
        yield one
        assert one.process.poll() is None, one.said
        assert not any(secret in one.said for secret in USERS.values())


def client_of(broker: BrokerProcess, who: str | None, acceptor: str = "http") -> HttpClient:
    """One connection that is kept."""
    headers = {} if who is None else {"Authorization": who}
    return HttpClient(broker.ports[acceptor], headers=headers)


def test_each_route_for_each_client(broker: BrokerProcess) -> None:
    clients = {who: client_of(broker, authorization) for who, authorization in WHO.items()}
    for method, path, statuses in TABLE:
        for (who, client), status in zip(clients.items(), statuses, strict=True):
            body = b'{"lsn": 0}' if method == "PUT" else None
            reply = client.ask(method, path, body)
            headers = reply.headers
            assert reply.status == status, (method, path, who)
            assert ("WWW-Authenticate" in headers) == (status == 401)
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "Server" not in headers
            assert "Access-Control-Allow-Origin" not in headers
    for client in clients.values():
        client.close()


@pytest.mark.parametrize(
    ("acceptor", "path", "statuses"),
    [
        ("shut", "/metrics", SHUT),
        ("shut", "/health/ready", SHUT),
        ("health", "/metrics", SHUT),
        ("health", "/health/live", (200,) * 6),
    ],
)
def test_metrics_and_health_are_shut_where_the_acceptor_says_so(
    broker: BrokerProcess, acceptor: str, path: str, statuses: tuple[int, ...]
) -> None:
    for authorization, status in zip(WHO.values(), statuses, strict=True):
        assert client_of(broker, authorization, acceptor).ask("GET", path).status == status


def test_a_refusal_says_who_may_not_do_what_and_what_would_help(broker: BrokerProcess) -> None:
    said = client_of(broker, WHO["viewer"]).ask("DELETE", "/log/cursors/c").body.decode()
    assert "User: bob does not have permission='EDIT' on address mops.broker.removeLogCursor" in said
    assert '<permission type="edit"' in said


@pytest.mark.parametrize("path", ["/metrics", "/health/live", "/log", "/memory"])
@pytest.mark.parametrize("header", ["Host: evil.example", "Host: localhost\r\nOrigin: http://evil.example"])
def test_a_browser_on_this_machine_is_no_way_in(broker: BrokerProcess, path: str, header: str) -> None:
    """Neither with the name of a page that resolves to the broker, nor with the login that the browser remembers."""
    data = f"GET {path} HTTP/1.1\r\n{header}\r\nAuthorization: {basic('ann')}\r\nConnection: close\r\n\r\n"
    assert exchanged(broker.ports["http"], data.encode()).startswith(b"HTTP/1.1 403 ")


def test_guesses_hold_up_nobody(broker: BrokerProcess) -> None:
    """Somebody tries passwords as fast as possible; those who read with theirs go on."""
    reader = client_of(broker, WHO["viewer"])
    assert reader.ask("GET", "/log").status == 200
    guessing = []
    for number in range(30):
        one = socket.create_connection((LOOPBACK, broker.ports["http"]), WAIT_S)
        guess = basic("ann", f"guess{number}")
        one.sendall(f"GET /log HTTP/1.1\r\nHost: localhost\r\nAuthorization: {guess}\r\n\r\n".encode())
        guessing.append(one)
    for _ in range(20):
        with client_of(broker, None) as client:  # one peer has few connections without a login
            assert client.ask("GET", "/health/ready").status == 200
    statuses = set()
    for one in guessing:
        statuses.add(one.recv(65536)[:12])
        one.close()
    assert statuses <= {b"HTTP/1.1 401", b"HTTP/1.1 503"}
    assert not any(f"guess{number}" in broker.said for number in range(30))
    eventually("the slowing is over", lambda: reader.ask("GET", "/log").status, lambda status: status == 200)


def _is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_strangers_are_few_and_take_nobody_s_place(broker: BrokerProcess) -> None:
    friend = client_of(broker, WHO["editor"])
    eventually("a login", lambda: friend.ask("GET", "/log").status, lambda status: status == 200)
    strangers = [socket.create_connection((LOOPBACK, broker.ports["http"]), WAIT_S) for _ in range(150)]
    for one in strangers[::2]:
        try:
            one.sendall(b"GET /log HTTP/1.1\r\nHost: x\r\nAuthor")
        except OSError:
            continue  # it had to make room
    assert friend.ask("GET", "/log").status == 200
    assert client_of(broker, None).ask("GET", "/health/live").status == 200
    left = eventually("few are left", lambda: sum(map(_is_open, strangers)), lambda count: count <= 40)
    assert left > 0
    for one in strangers:
        one.close()
    friend.close()


def cli(broker: BrokerProcess, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "password").write_text(USERS["ann"] + "\n")
    return run_text(arguments, environment={**os.environ, **environment}, timeout=120)


def test_the_commands_log_in(broker: BrokerProcess, tmp_path: Path) -> None:
    place = f"{LOOPBACK}:{broker.ports['http']}"
    secret = str(tmp_path / "password")
    editor = client_of(broker, WHO["editor"])
    made = eventually(
        "a cursor", lambda: editor.ask("PUT", "/log/cursors/mine", b'{"lsn": 0}').status, lambda status: status < 300
    )
    assert made == 201
    listing = ("cursor", "ls", "--url", f"http://{place}")
    dropping = ("cursor", "delete", "mine", "--yes", "--url", f"http://{place}")
    by_url = ("cursor", "ls", "--url", f"http://ann@{place}", "--password-file", secret, "--json")
    listed = cli(broker, tmp_path, *by_url)
    assert (listed.returncode, json.loads(listed.stdout)["data"][0]["name"]) == (0, "mine"), listed.stderr
    as_bob = {"ARTEMIS_PY_USER": "bob", "ARTEMIS_PY_PASSWORD": USERS["bob"]}
    assert "mine" in cli(broker, tmp_path, *listing, **as_bob).stdout
    no = cli(broker, tmp_path, *dropping, **as_bob)
    assert (no.returncode, "User: bob does not have permission='EDIT'" in no.stderr) == (1, True), no.stderr
    wrong = cli(broker, tmp_path, *listing, "--user", "ann", ARTEMIS_PY_PASSWORD="a wrong one")
    assert (wrong.returncode, "refuses user 'ann'" in wrong.stderr) == (1, True), wrong.stderr
    assert "a wrong one" not in wrong.stderr
    dropped = cli(broker, tmp_path, *dropping, "--user", "ann", "--password-file", secret)
    assert dropped.stdout.split() == ["removed", "mine"]
    perf = ("perf", f"stomp://ann@{LOOPBACK}:{broker.port}", "--scenario", "1", "--messages", "100", "--warmup", "0")
    good = cli(broker, tmp_path, *perf, "--password-file", secret)
    assert good.returncode == 0, good.stderr
    bad = cli(broker, tmp_path, *perf, ARTEMIS_PY_PASSWORD="a wrong one")
    assert (bad.returncode, "a wrong one" in bad.stderr + bad.stdout) == (1, False)
    assert "is invalid" in bad.stderr


LOGIN_CONFIG = """
by-certificate {
   org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule required
      org.apache.activemq.jaas.textfiledn.user="certificates.properties"
      org.apache.activemq.jaas.textfiledn.role="artemis-roles.properties";
};
"""


def test_a_certificate_is_a_login(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "login.config").write_text(LOGIN_CONFIG)
    (tmp_path / "certificates.properties").write_text("bob=CN=reader\n")
    shown: dict[str, object] = {
        "keyStorePath": authority.issue("broker").pkcs12(tmp_path / "broker.p12"), "keyStorePassword": PASSWORD,
        "wantClientAuth": "true", "trustStorePath": authority.pem(tmp_path / "trust.pem"),
    }  # fmt: skip
    named = '<authentication login-config="login.config" domain="by-certificate"/>'
    with secured_broker(tmp_path, named, https=uri("HTTP", **shown)) as broker:

        def status(method: str, path: str, name: str | None) -> int:
            issued = None if name is None else authority.issue(name)
            with HttpClient(broker.ports["https"], tls=trusting(authority, issued, tmp_path)) as client:
                return client.ask(method, path, b'{"lsn": 0}' if method == "PUT" else None).status

        assert status("GET", "/log", "reader") == 200
        assert status("PUT", "/log/cursors/c", "reader") == 403
        assert status("GET", "/log", "somebody") == 401
        assert status("GET", "/log", None) == 401
        assert status("GET", "/metrics", None) == 200
        listing = ("cursor", "ls", "--url", f"https://localhost:{broker.ports['https']}")
        known, own = ("--ca-file", str(tmp_path / "trust.pem")), authority.issue("reader").pem(tmp_path / "own.pem")
        good = cli(broker, tmp_path, *listing, *known, "--certificate-file", str(own))
        assert (good.returncode, good.stderr) == (0, "")
        strange = cli(broker, tmp_path, *listing, "--certificate-file", str(own))
        assert "certificate is not accepted: self-signed certificate in certificate chain; --ca-file" in strange.stderr
        unchecked = cli(broker, tmp_path, *listing, "--no-verify", "--certificate-file", str(own))
        assert unchecked.returncode == 0


LINES = st.sampled_from(
    [
        b"Authorization: Basic ", b"Authorization: " + basic("ann").encode(), b"Authorization: Bearer \xff",
        b"authorization: basic Og==", b"Authorization: Basic YTpi\r\nAuthorization: Basic YTpi", b"Host: localhost",
        b"Host: evil.example", b"Origin: null", b"Origin: http://localhost", b"Sec-Fetch-Site: cross-site",
        b"Expect: 100-continue", b"Content-Length: 3", b"Content-Length: -1", b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked", b"Connection: upgrade", b"Upgrade: websocket", b"Range: bytes=0-1",
        b"Range: bytes=5-1", b" folded", b"X" * 300 + b": y", b"\x00: \x00", b": ", b"Cookie: a=b",
    ]
)  # fmt: skip
METHODS = st.sampled_from(
    [b"GET", b"HEAD", b"PUT", b"DELETE", b"POST", b"TRACE", b"CONNECT", b"OPTIONS", b"PRI", b"g\x00"]
)
PATHS = st.sampled_from(
    [
        b"/log", b"/log?after_lsn=1", b"/log/cursors", b"/log/cursors/%2e", b"/log/segments/1", b"/log/bodies/1",
        b"/memory", b"/metrics", b"/health/ready", b"/metrics/", b"*", b"http://localhost/log", b"/%ff", b"//log",
        b"http://a:b@localhost/log", b"/log#x", b"/log/../memory",
    ]
)  # fmt: skip
REQUESTS = st.builds(
    lambda method, path, version, lines, body: b"\r\n".join([b" ".join([method, path, version]), *lines, b"", body]),
    METHODS,
    PATHS,
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.1 ", b""]),
    st.lists(LINES, max_size=5),
    st.one_of(st.just(b""), st.binary(max_size=40), st.just(b"3\r\nabc\r\n0\r\n\r\n"), st.just(b'{"lsn": 0}')),
)


@given(requests=st.lists(st.one_of(REQUESTS, REQUESTS, st.binary(min_size=1, max_size=60)), min_size=1, max_size=3))
def test_no_request_is_the_broker_s_own_failure_or_hangs(broker: BrokerProcess, requests: list[bytes]) -> None:
    """Whatever a stranger says, each answer is one, none says 5xx, and the end comes."""
    got = exchanged(broker.ports["http"], b"".join(requests))
    assert got == b"" or got.startswith(b"HTTP/1.1 "), got[:100]
    for part in got.split(b"HTTP/1.1 ")[1:]:
        status = part[:3]
        assert status.isdigit()
        assert status[0] in b"1234" or status in (b"501", b"503"), part[:200]  # 501: a transfer coding nobody knows
    assert b"secret" not in got
