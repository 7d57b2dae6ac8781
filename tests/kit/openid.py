"""A small OpenID provider for tests: it signs, rotates its keys, and refuses whatever a careful provider refuses
(another redirect URI, a wrong verifier, a code or refresh token that was used). Tests may break it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.kit.web_server import Handler, serving

CLIENT: Final = "console"
_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>Provider</title><form method="post">
<p>Who are you?</p><input id="who" name="who"><button>Enter</button></form>"""


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    """Of the keys of a provider, one after the other; all providers have the same, because making one takes long."""
    return rsa.generate_private_key(65537, 2048)


class Provider(ThreadingHTTPServer):
    """Users are those of ``claims``: what their access tokens say beside the rest."""

    daemon_threads = True

    def __init__(self, certificate: Path | None = None) -> None:
        """``certificate``: a file with key and certificate, for https."""
        self.claims: dict[str, dict[str, Any]] = {
            "ann": {"realm_access": {"roles": ["broker-admin", "offline_access"]}},
            "bob": {"realm_access": {"roles": ["offline_access"]}},
        }
        self.redirects: set[str] = set()
        self.secret = ""
        self.lasts_s = 3600
        self.modes = ["query", "fragment"]
        self.methods = ["client_secret_basic", "none"]
        self.access_tokens_are_jwts = True
        self.issuer_told = ""
        """Another issuer than its own, in the document."""
        self.said: dict[str, Any] = {}
        """What ID tokens say instead."""
        self.status = 200
        """Of each answer to the broker; not 200: it is down."""
        self.hangs = threading.Event()
        """Set: it answers."""
        self.hangs.set()
        self.sessions: set[str] = set()
        """Who has logged in and not out."""
        self.asked: list[str] = []
        """The paths of all requests."""
        self.forms: list[dict[str, str]] = []
        """What the token endpoint got."""
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self._keys_made = 0
        self.codes: dict[str, dict[str, str]] = {}
        self._refreshing: dict[str, str] = {}
        self.rotate()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = self.server_port
        scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.issuer = f"{scheme}://127.0.0.1:{self.port}/realms/shop"

    def rotate(self) -> None:
        """Sign with a new key from now on; the old one counts no more."""
        self.keys.clear()
        self.keys[secrets.token_hex(4)] = _key(self._keys_made)
        self._keys_made += 1

    def forget(self) -> None:
        """Nobody is logged in any more, as when an administrator ends the sessions."""
        self.sessions.clear()
        self._refreshing.clear()

    def token(self, user: str = "ann", **more: Any) -> str:
        """An access token; None as a claim takes it away."""
        now_s = int(time.time())
        said = {"iss": self.issuer, "sub": f"number of {user}", "aud": "account", "azp": CLIENT, "typ": "Bearer"}
        said |= {"iat": now_s, "exp": now_s + self.lasts_s, "preferred_username": user}  # type: ignore[dict-item]
        claims = {
            name: value for name, value in {**said, **self.claims.get(user, {}), **more}.items() if value is not None
        }
        key_id, key = list(self.keys.items())[-1]
        return jwt.encode(claims, key, "RS256", {"kid": key_id})

    def document(self, path: str) -> dict[str, Any]:
        if path.endswith("/certs"):
            to_jwk = jwt.algorithms.RSAAlgorithm.to_jwk
            sets = [(name, json.loads(to_jwk(key.public_key()))) for name, key in self.keys.items()]
            return {"keys": [{**each, "kid": name, "use": "sig", "alg": "RS256"} for name, each in sets]}
        assert path == "/realms/shop/.well-known/openid-configuration", path
        return {
            "issuer": self.issuer_told or self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/certs",
            "end_session_endpoint": f"{self.issuer}/logout",
            "response_modes_supported": self.modes,
            "token_endpoint_auth_methods_supported": self.methods,
        }

    def wrong_request(self, query: dict[str, str]) -> str:
        if query.get("client_id") != CLIENT or query.get("redirect_uri") not in self.redirects:
            return f"another client or redirect URI: {html.escape(str(query))}"
        if query.get("code_challenge_method") != "S256" or len(query.get("code_challenge", "")) != 43:
            return "PKCE is required"
        return "" if "openid" in query.get("scope", "").split() and query.get("state") else "scope or state is missing"

    def tokens(self, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{quote_plus(self.secret)}".encode()).decode()
        is_basic = "client_secret_basic" in self.methods
        if self.secret and (authorization != basic if is_basic else form.get("client_secret") != self.secret):
            return {"error": "invalid_client"}
        if form["grant_type"] == "refresh_token":
            user, nonce = self._refreshing.pop(form["refresh_token"], None), None
            if user is None:
                return {"error": "invalid_grant"}
        else:
            asked = self.codes.pop(form["code"], None)
            if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
                return {"error": "invalid_grant", "error_description": "Code not valid"}
            digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            if digest.decode().rstrip("=") != asked["code_challenge"]:
                return {"error": "invalid_grant", "error_description": "PKCE verification failed"}
            user, nonce = asked["user"], asked["nonce"]
        refresh = secrets.token_urlsafe()
        self._refreshing[refresh] = user
        of_login = {"aud": CLIENT, "azp": None, "nonce": nonce, "at_hash": "x", "typ": "ID", **self.said}
        return {
            "access_token": self.token(user) if self.access_tokens_are_jwts else secrets.token_urlsafe(),
            "token_type": "Bearer",
            "expires_in": self.lasts_s,
            "refresh_token": refresh,
            "id_token": self.token(user, **of_login),
        }


class _Handler(Handler):
    server: Provider

    def do_GET(self) -> None:
        """A document, or the page where people log in or out."""
        there, url = self.server, urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        there.asked.append(url.path)
        if url.path.endswith("/auth"):
            wrong = there.wrong_request(query)
            if wrong:
                self.answer(400, wrong.encode())
            elif there.sessions:
                self._send_back(query, min(there.sessions))
            else:
                self.answer(200, _PAGE.encode(), Content_Type="text/html")
        elif url.path.endswith("/logout"):
            back = query.get("post_logout_redirect_uri", "")
            if back not in there.redirects or query.get("client_id") != CLIENT:
                self.answer(400, b"who are you?")
                return
            there.forget()
            self.answer(302, Location=back)
        elif url.path == "/favicon.ico":
            self.answer(404)
        else:
            there.hangs.wait(120)
            self.answer(there.status, json.dumps(there.document(url.path)).encode(), Content_Type="application/json")

    def do_POST(self) -> None:
        """The form where people log in, or the token endpoint."""
        there, url = self.server, urlsplit(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        there.asked.append(url.path)
        if url.path.endswith("/auth"):
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if form["who"] in there.claims:
                there.sessions.add(form["who"])
            self._send_back(query, form["who"], "" if form["who"] in there.claims else "access_denied")
            return
        there.hangs.wait(120)
        there.forms.append(form)
        if there.status != 200:
            self.answer(there.status, b"down")
            return
        told = there.tokens(form, self.headers.get("Authorization"))
        self.answer(400 if "error" in told else 200, json.dumps(told).encode(), Content_Type="application/json")

    def _send_back(self, query: dict[str, str], user: str, error: str = "") -> None:
        there, code = self.server, secrets.token_urlsafe()
        there.codes[code] = {**query, "user": user}
        given = {"error": error, "error_description": "Not today"} if error else {"code": code}
        mark = "#" if query.get("response_mode") == "fragment" and "fragment" in there.modes else "?"
        told = urlencode({**given, "state": query["state"], "iss": there.issuer})
        self.answer(302, Location=f"{query['redirect_uri']}{mark}{told}")


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """A token that nobody has signed."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@contextmanager
def provider(certificate: Path | None = None) -> Iterator[Provider]:
    """One that runs, with the users ann (broker-admin) and bob (nothing that the broker knows)."""
    one = Provider(certificate)
    with serving(one, one.hangs):
        yield one
