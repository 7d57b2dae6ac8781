"""One console of several brokers that all have TLS, with certificates of their own and logins at a provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, why_no_browser
from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.process import HTTP, LOOPBACK, STOMP, configuration, running
from tests.kit.secured import secured_broker
from tests.kit.tls import uri

pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
from tests.e2e.console.test_login_at_a_provider import MAPPING, authentication
from tests.kit.openid import provider

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def test_a_login_at_the_provider_of_another_broker(browser: Browser, tmp_path: Path) -> None:
    """The browser comes back to the page of the one broker, with a login for the other one."""
    certificate = Authority().issue("broker").pem(tmp_path / "broker.pem")
    ports = {"own": free_port(), "other": free_port()}
    urls = {name: f"https://{LOOPBACK}:{port}" for name, port in ports.items()}

    acceptors = {
        "stomp": STOMP,
        "http": f"{HTTP};consoleBrokers={urls['other']}",
        "https": uri("HTTP", keyStorePath=certificate, consoleBrokers=urls["other"]).replace(
            ":0?", f":{ports['own']}?"
        ),
    }
    own = configuration(acceptors, name="own")
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    with provider() as there:
        there.redirects = {f"{urls['own']}/ui/"}
        users = authentication(there.issuer)
        http = uri("HTTP", keyStorePath=certificate, allowedOrigins=urls["own"]).replace(":0?", f":{ports['other']}?")
        with (
            running(own, tmp_path / "own") as first,
            secured_broker(tmp_path / "other", users, MAPPING, http=http) as second,
        ):
            screen = Screen(browser, first)
            screen.open("/")
            screen.sees("unreachable", "or the browser does not trust its certificate")
            with browser.trusting_everybody():
                screen = Screen(browser, first, "https")
                screen.open("/")
                screen.sees("Accepting messages.", "not logged in")
                screen.press("Log in", ".fleet")
                screen.press("Log in with Shop")
                screen.sees("Who are you?")
                screen.types("#who", "ann")
                screen.press("Enter")
                screen.sees("secured", "Log out", "ann")
                screen.go("/queues/jobs")
                screen.act("Pause")
                screen.press("Pause", "dialog")
                screen.sees("Pause jobs: done.")
                assert "user=ann" in second.said
                screen.press("Log out")
                screen.sees("not logged in")
                assert there.sessions == set()
