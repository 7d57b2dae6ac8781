"""The console, HTTP and STOMP with logins at a real Keycloak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, why_no_browser
from tests.kit.client import StompSocket
from tests.kit.http import Reply
from tests.kit.keycloak import MISSING, Keycloak, keycloak
from tests.kit.process import LOOPBACK, BrokerProcess, eventually
from tests.kit.secured import secured_broker

pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]
needs_browser = pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))

AUTHENTICATION = """<authentication><authenticator name="oidc">
<option name="name" value="Keycloak"/>
<option name="issuer" value="{url}/realms/shop"/>
<option name="client-id" value="console"/>
<option name="user-claim" value="preferred_username"/>
<option name="roles-claim" value="realm_access.roles"/>
</authenticator></authentication>"""
MAPPING = '<role-mapping from="broker-admin" to="editors,workers"/>'
LASTS_S = 20


@dataclass
class Shop:
    """A broker, and the realm of its users ann and bob, of whom only ann has a role there."""

    broker: BrokerProcess
    provider: Keycloak

    def ask(self, token: str) -> Reply:
        """A program asks for queues with this token."""
        return self.broker.ask("GET", "/api/queues", Authorization=f"Bearer {token}")

    def token(self, user: str) -> dict[str, str]:
        """What Keycloak tells a program that has the user's password."""
        return self.provider.log_in(
            "shop", client_id="console", username=user, password=f"{user}'s secret", scope="openid"
        )


def realm(redirect: str) -> dict[str, object]:
    """As docs/oidc.md says how to make it."""
    users = [
        {
            "username": name, "enabled": True, "email": f"{name}@example.org", "firstName": name, "lastName": name,
            "credentials": [{"type": "password", "value": f"{name}'s secret"}],
            "realmRoles": ["broker-admin"] if name == "ann" else [],
        }
        for name in ("ann", "bob")
    ]  # fmt: skip
    client = {
        "clientId": "console", "publicClient": True, "standardFlowEnabled": True, "directAccessGrantsEnabled": True,
        "redirectUris": [redirect],
        "attributes": {"pkce.code.challenge.method": "S256", "post.logout.redirect.uris": "+"},
    }  # fmt: skip
    return {
        "realm": "shop",
        "enabled": True,
        "accessTokenLifespan": LASTS_S,
        "roles": {"realm": [{"name": "broker-admin"}]},
        "clients": [client],
        "users": users,
    }


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with (
        keycloak(folder / "keycloak.log") as provider,
        secured_broker(folder, AUTHENTICATION.format(url=f"http://{LOOPBACK}:{provider.port}"), MAPPING) as broker,
    ):
        provider.admin("", realm(f"http://{LOOPBACK}:{broker.ports['http']}/ui/"))
        yield Shop(broker, provider)


def test_programs(shop: Shop) -> None:
    ann, bob = shop.token("ann"), shop.token("bob")
    assert shop.ask(ann["access_token"]).status == 200
    reply = shop.ask(bob["access_token"])
    assert reply.status == 403
    assert "the token's realm_access.roles gives the roles " in reply.body.decode()
    for wrong in ("id_token", "refresh_token"):
        assert shop.ask(ann[wrong]).status == 401
    with StompSocket(shop.broker.port) as client:
        client.connect(login="ann", passcode=ann["access_token"])


def test_new_keys_count(shop: Shop) -> None:
    assert shop.ask(shop.token("ann")["access_token"]).status == 200
    (shop_realm,) = (each["id"] for each in shop.provider.admin("") if each["realm"] == "shop")
    more = {
        "name": "rsa-new", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
        "parentId": shop_realm, "config": {"priority": ["200"]},
    }  # fmt: skip
    shop.provider.admin("/shop/components", more)
    # a new key is asked for at most every ten seconds
    eventually("the new key", lambda: shop.ask(shop.token("ann")["access_token"]).status, lambda status: status == 200)


@needs_browser
def test_people(browser: Browser, shop: Shop) -> None:
    screen = Screen(browser, shop.broker)
    screen.open("/queues")
    screen.press("Log in with Keycloak")
    screen.types("#username", "ann")
    screen.types("#password", "ann's secret")
    screen.run("document.querySelector('#kc-login').click()")
    screen.sees("2 queues", "Log out", "ann")
    assert screen.run("return location.href") == f"{screen.broker.url}/ui/#/queues"
    (client,) = shop.provider.admin("/shop/clients?clientId=console")
    assert int(shop.provider.admin(f"/shop/clients/{client['id']}/session-count")["count"]) >= 1
    before = shop.broker.metric("artemis_logins_verified_total")
    eventually("a renewal", lambda: shop.broker.metric("artemis_logins_verified_total"), lambda now: now > before)
    screen.go("/addresses")
    screen.sees("jobs", "Log out")
    screen.press("Log out")
    screen.sees("This broker requires a login.")
    screen.press("Log in with Keycloak")
    screen.until("that Keycloak asks again", "return document.querySelector('#username') !== null")
    screen.types("#username", "bob")
    screen.types("#password", "bob's secret")
    screen.run("document.querySelector('#kc-login').click()")
    screen.sees("the token's realm_access.roles gives the roles", "role-mapping")
    assert "eyJ" not in shop.broker.said
