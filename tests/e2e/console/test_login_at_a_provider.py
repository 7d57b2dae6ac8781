"""The console, HTTP and STOMP with logins at an OpenID provider: real sockets, a real browser, and a small provider."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, why_no_browser
from tests.kit.client import StompSocket
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, BrokerProcess, eventually, for_each_test
from tests.kit.secured import USERS, basic, secured_broker

pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
from tests.kit.openid import CLIENT, Provider, provider

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]

OPTIONS = {"client-id": CLIENT, "name": "Shop", "user-claim": "preferred_username", "roles-claim": "realm_access.roles"}
OPTIONS["leeway"] = "0"  # so that nobody has to wait for the end of a token
MAPPING = '<role-mapping from="broker-admin" to="editors,workers"/>'


def authentication(issuer: str, **more: str) -> str:
    """The XML that names the provider."""
    options = "".join(f'<option name="{name}" value="{value}"/>' for name, value in {**OPTIONS, **more}.items())
    return (
        f'<authentication><authenticator name="oidc"><option name="issuer" value="{issuer}"/>{options}'
        "</authenticator></authentication>"
    )


there = for_each_test(lambda _: provider())


@pytest.fixture
def broker(there: Provider, tmp_path: Path) -> Iterator[BrokerProcess]:
    behind = f"{HTTP};allowedHosts=console.example.org"
    with secured_broker(tmp_path, authentication(there.issuer), MAPPING, behind=behind) as one:
        there.redirects = {f"http://{LOOPBACK}:{one.ports['http']}/ui/"}
        yield one


def go_there(screen: Screen, user: str, place: str = "/queues", *, keep: bool = False) -> None:
    """Log in at the provider, beginning at a page of the console."""
    screen.open(place)
    screen.sees("Log in with Shop")
    if keep:
        screen.run("document.querySelector('[name=keep]').click()")
    screen.press("Log in with Shop")
    screen.sees("Who are you?")
    screen.types("#who", user)
    screen.press("Enter")


def stored(screen: Screen) -> str:
    """What the page keeps in the browser."""
    return str(screen.run("return document.cookie + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)"))


@pytest.mark.parametrize("modes", [["query", "fragment"], ["query"]])
def test_in_and_out(screen: Screen, broker: BrokerProcess, there: Provider, modes: list[str]) -> None:
    there.modes = modes
    screen.open("/queues?where=x&state=y")
    screen.sees("Log in with Shop")
    assert "answers no login" not in screen.text, "a page of the console may have such words, too"
    go_there(screen, "ann")
    screen.sees("2 queues", "Log out", "ann")
    assert screen.run("return location.href") == f"{screen.broker.url}/ui/#/queues", "the code is gone from the URL"
    assert stored(screen) == "{}{}"
    screen.go("/queues/jobs")
    screen.act("Pause")
    screen.press("Pause", "dialog")
    screen.sees("Pause jobs: done.")
    screen.press("Log out")
    screen.sees("This broker requires a login.")
    assert there.sessions == set(), "the login at the provider has ended, too"
    assert stored(screen) == "{}{}"
    complaints = [text for text in screen.complaints() if "401 (Unauthorized)" not in text]
    assert complaints == [], "the policy allows all that the page does"
    for secret in (there.forms[0]["code"], there.forms[0]["code_verifier"], "eyJ"):
        assert secret not in broker.said


@pytest.mark.parametrize("modes", [["query", "fragment"], ["query"]])
def test_the_place_of_artemis_console(browser: Browser, there: Provider, tmp_path: Path, modes: list[str]) -> None:
    """A provider that knew Artemis sends people back to there."""
    there.modes = modes
    port = free_port()
    redirect = f"http://{LOOPBACK}:{port}/console"
    there.redirects = {redirect}
    users = authentication(there.issuer, **{"redirect-uri": redirect})
    with secured_broker(tmp_path, users, MAPPING, http=HTTP.replace(":0?", f":{port}?")) as broker:
        screen = Screen(browser, broker)
        go_there(screen, "ann")
        screen.sees("2 queues", "Log out", "ann")


def test_a_login_that_is_kept_outlasts_a_reload(screen: Screen, there: Provider) -> None:
    go_there(screen, "ann", keep=True)
    screen.sees("2 queues")
    screen.open("/queues")
    screen.sees("2 queues", "Log out")
    screen.press("Log out")
    screen.sees("This broker requires a login.")
    assert (stored(screen), there.sessions) == ("{}{}", set())


def test_who_lacks_a_role_reads_which_ones_came(screen: Screen, there: Provider) -> None:
    go_there(screen, "bob", "/queues")
    screen.sees("the token's realm_access.roles gives the roles 'offline_access', of which <role-mapping from=")
    line = screen.run("return document.querySelector('.problem code').innerText")
    assert "ROLE" in line
    assert "offline_access" not in line, "a provider may give this role to anybody"
    screen.press("Log out")
    screen.sees("This broker requires a login.")
    assert there.sessions == set()


def test_a_token_is_renewed_before_it_ends(screen: Screen, there: Provider) -> None:
    there.lasts_s = 8
    go_there(screen, "ann")
    screen.sees("2 queues")
    first = there.forms[0]
    renewed = eventually("a renewal", lambda: there.forms[1:], bool)
    assert (first["grant_type"], renewed[0]["grant_type"]) == ("authorization_code", "refresh_token")
    eventually("another", lambda: len(there.forms), lambda count: count >= 4)  # the first token has ended by now
    screen.go("/addresses")
    screen.sees("jobs", "Log out")


def test_a_page_that_slept_gets_another_token(screen: Screen, broker: BrokerProcess, there: Provider) -> None:
    there.lasts_s = 8
    go_there(screen, "ann")
    screen.sees("2 queues")
    # as after a night in a bag: no timer has rung, and the clock is further
    screen.run(
        "for (let id = setTimeout(() => 0); id > 0; id -= 1) clearTimeout(id);"
        "const now = Date.now; Date.now = () => now() + 3600000"
    )
    token = there.token()
    login = {"Authorization": f"Bearer {token}"}
    eventually("the end", lambda: broker.ask("GET", "/api/queues", **login).status, lambda status: status == 401)
    assert len(there.forms) == 1
    screen.go("/addresses")
    screen.sees("2 addresses", "Log out")
    assert there.forms[1]["grant_type"] == "refresh_token"
    assert "Log in with Shop" not in screen.text


def test_the_form_comes_back_when_the_provider_has_ended_the_session(screen: Screen, there: Provider) -> None:
    there.lasts_s = 8
    go_there(screen, "ann")
    screen.sees("2 queues")
    there.forget()
    screen.sees("This broker requires a login.")


@pytest.mark.parametrize("mark", ["#", "?"])
def test_an_answer_to_another_login_is_refused(screen: Screen, there: Provider, mark: str) -> None:
    screen.open("/queues")
    screen.sees("Log in with Shop")
    screen.browser.go("about:blank")
    screen.browser.go(f"{screen.broker.url}/ui/{mark}code=stolen&state=guessed")
    screen.sees("This answers no login that began in this tab", "Log in with Shop")
    assert there.forms == []
    assert "stolen" not in screen.run("return location.href")
    screen.log_in("ann")
    screen.sees("Accepting messages.")


def test_an_id_token_of_another_login_is_refused(screen: Screen, there: Provider) -> None:
    there.said = {"nonce": "of somebody else"}
    go_there(screen, "ann")
    screen.sees("its nonce is not this page's", "Log in with Shop")
    assert stored(screen) == "{}{}"


def test_a_provider_that_refuses_says_why(screen: Screen) -> None:
    go_there(screen, "nobody")
    screen.sees("Shop did not log you in: Not today", "Log in with Shop")


def test_while_the_provider_is_down_passwords_work(screen: Screen, broker: BrokerProcess, there: Provider) -> None:
    there.status = 500
    screen.open("/queues")
    screen.press("Log in with Shop")
    screen.sees("cannot be fetched: HTTP Error 500")
    screen.log_in("ann")
    screen.sees("2 queues")
    assert "ART-2001" in broker.said
    assert "login at Shop failed" in broker.said


# ---- without a browser ---------------------------------------------------------------------------


def test_http_and_stomp_take_the_token(broker: BrokerProcess, there: Provider) -> None:
    assert broker.ask("GET", "/api/queues", Authorization=f"Bearer {there.token()}").status == 200
    reply = broker.ask("GET", "/api/queues", Authorization=f"Bearer {there.token('bob')}")
    assert reply.status == 403
    assert "the token's realm_access.roles gives the roles 'offline_access'" in reply.body.decode()
    with StompSocket(broker.port) as client:
        client.connect(login="ann", passcode=there.token())
    with StompSocket(broker.port) as client:
        client.connect(login="token", passcode=there.token())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"exp": 1_000_000_000}, "the token expired at 2001-09-09T01:46:40Z"),
        ({"iss": "https://other.example"}, "the token is of the issuer 'https://other.example'"),
        ({"azp": "other"}, "the token is for the audience 'account', and not made for the client 'console'"),
    ],
)
def test_what_is_wrong_with_a_token_is_said(
    broker: BrokerProcess, there: Provider, said: dict[str, Any], why: str
) -> None:
    token = there.token(**said)
    reply = broker.ask("GET", "/api/queues", Authorization=f"Bearer {token}")
    assert (reply.status, reply.body.decode().startswith(why)) == (401, True), reply.body
    with StompSocket(broker.port) as client:
        client.send("CONNECT", {"accept-version": "1.2", "host": "broker", "login": "token", "passcode": token})
        assert client.receive().body.decode().startswith(f"Security Error occurred: {why}")
    assert why in broker.said
    assert token not in broker.said


def test_a_provider_that_hangs_holds_up_nobody(broker: BrokerProcess, there: Provider) -> None:
    """More logins with tokens wait for its keys than there are threads; one with a password does not."""
    there.hangs.clear()
    sockets = [StompSocket(broker.port) for _ in range(12)]
    try:
        for number, client in enumerate(sockets):
            login = {"login": "token", "passcode": there.token(jti=str(number))}
            client.send("CONNECT", {"accept-version": "1.2", "host": "broker", **login})
        eventually("the provider is asked", lambda: there.asked, bool)
        eventually("all wait", lambda: broker.metric("artemis_logins_waiting"), lambda count: count == len(sockets))
        for user in USERS:
            assert broker.ask("GET", "/health/ready", Authorization=basic(user)).status == 200
            with StompSocket(broker.port) as client:
                client.connect(login=user, passcode=USERS[user])
        assert broker.metric("artemis_logins_waiting") == len(sockets)
        there.hangs.set()
        for client in sockets:
            assert client.receive().command == "CONNECTED"
    finally:
        for client in sockets:
            client.close()


def test_keys_outlast_the_provider_and_a_reload(broker: BrokerProcess, there: Provider, tmp_path: Path) -> None:
    assert broker.ask("GET", "/api/queues", Authorization=f"Bearer {there.token()}").status == 200
    there.shutdown()
    there.server_close()
    file = tmp_path / "broker.xml"
    more = f'{MAPPING}<role-mapping from="offline_access" to="viewers"/>'
    file.write_text(file.read_text().replace(MAPPING, more).replace('value="Shop"', 'value="Market"'))
    headers = {"Authorization": basic("ann"), "Content-Type": "application/json"}
    reply = broker.ask("POST", "/api/broker/reload", b"{}", **headers)
    assert reply.status == 200, reply.body
    assert reply.json["result"] in ("applied", "unchanged"), "the broker sees the file by itself, too"
    assert broker.ask("GET", "/ui/logins").answer == (200, b'["Market"]\n')
    assert broker.ask("GET", "/api/queues", Authorization=f"Bearer {there.token()}").status == 200
    assert broker.ask("GET", "/api/queues", Authorization=f"Bearer {there.token('bob')}").status == 200
    warned = b"tokens may not be checked: what the provider says of itself at"
    eventually("the warning", lambda: broker.ask("GET", "/health/ready").body, lambda body: warned in body)
    assert broker.said.count("; those that were fetched before stay in force") == 1


def test_pages_of_others_may_not_use_the_routes(broker: BrokerProcess, there: Provider) -> None:
    body = {
        "redirectUri": f"http://{LOOPBACK}:{broker.ports['http']}/ui/",
        "state": "s",
        "nonce": "n",
        "verifier": "v" * 43,
    }
    own = f"http://{LOOPBACK}:{broker.ports['http']}"
    for origin, more, status in (
        (own, {}, 200),
        ("https://evil.example", {}, 403),
        ("", {}, 400),
        (own, {"redirectUri": "https://evil.example/ui/"}, 400),
        (own, {"colour": "red"}, 400),
    ):
        headers, data = {"Origin": origin} if origin else {}, json.dumps({**body, **more}).encode()
        assert broker.ask("POST", "/ui/logins/Shop", data, **headers).status == status, (origin, more)
    assert broker.ask("POST", "/ui/logins/Nobody", b"{}", Origin=own).status == 404
    assert broker.ask("GET", "/ui/logins").answer == (200, b'["Shop"]\n')


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("console.example.org", "https://console.example.org", 200),
        ("127.0.0.1:8161", "https://console.example.org", 200),
        ("console.example.org", "https://evil.example", 403),
        ("evil.example", "https://evil.example", 403),
    ],
)
def test_behind_a_proxy_the_hosts_of_the_acceptor_count(
    broker: BrokerProcess, there: Provider, host: str, origin: str, expected: int
) -> None:
    """A proxy ends TLS, and passes the Host on or writes its own."""
    page = {"redirectUri": f"{origin}/ui/", "state": "s", "nonce": "n", "verifier": "v" * 43}
    headers = {"Host": host, "Origin": origin}
    url = f"http://{LOOPBACK}:{broker.ports['behind']}/ui/logins/Shop"
    request = urllib.request.Request(url, json.dumps(page).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            status, told = answer.status, json.load(answer)
            assert "redirect_uri=https%3A%2F%2Fconsole.example.org%2Fui%2F" in told["url"]
    except urllib.error.HTTPError as refused:
        refused.close()
        status = refused.code
    assert status == expected
    assert bool(there.asked) == (expected == 200)
