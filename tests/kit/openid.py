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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT: Final = "console"
_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>Provider</title><form method="post">
<p>Who are you?</p><input id="who" name="who"><button>Enter</button></form>"""


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    """Of the keys of a provider, one after the other; all providers have the same, because making one takes long."""
    return rsa.generate_private_key(65537, 2048)


class Provider:
    """Users are those of ``claims``: what their access tokens say beside the rest."""

    def __init__(self, certificate: Path | None = None) -> None:
        """``certificate``: a file with key and certificate, for https."""
        self.claims: dict[str, dict[str, Any]] = {}
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
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshing: dict[str, str] = {}
        self.rotate()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.post(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
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
        return self.signed(**{**said, **self.claims.get(user, {}), **more})

    def signed(self, **claims: Any) -> str:
        """A token that says this, signed with the newest key."""
        key_id, key = list(self.keys.items())[-1]
        return jwt.encode(
            {name: said for name, said in claims.items() if said is not None}, key, "RS256", {"kid": key_id}
        )

    # ---- what it answers -------------------------------------------------------------------------

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        """A document, or the page where people log in or out."""
        url = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append(url.path)
        if url.path.endswith("/auth"):
            wrong = self._wrong_request(query)
            if wrong:
                _answer(handler, 400, wrong.encode(), "text/plain")
            elif self.sessions:
                self._send_back(handler, query, min(self.sessions))
            else:
                _answer(handler, 200, _PAGE.encode(), "text/html")
        elif url.path.endswith("/logout"):
            back = query.get("post_logout_redirect_uri", "")
            if back not in self.redirects or query.get("client_id") != CLIENT:
                _answer(handler, 400, b"who are you?", "text/plain")
                return
            self.forget()
            _redirect(handler, back)
        elif url.path == "/favicon.ico":
            _answer(handler, 404, b"", "text/plain")
        else:
            self.hangs.wait(120)
            _answer(handler, self.status, json.dumps(self._document(url.path)).encode())

    def _document(self, path: str) -> dict[str, Any]:
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

    def _wrong_request(self, query: dict[str, str]) -> str:
        if query.get("client_id") != CLIENT or query.get("redirect_uri") not in self.redirects:
            return f"another client or redirect URI: {html.escape(str(query))}"
        if query.get("code_challenge_method") != "S256" or len(query.get("code_challenge", "")) != 43:
            return "PKCE is required"
        return "" if "openid" in query.get("scope", "").split() and query.get("state") else "scope or state is missing"

    def _send_back(self, handler: BaseHTTPRequestHandler, query: dict[str, str], user: str, error: str = "") -> None:
        code = secrets.token_urlsafe()
        self._codes[code] = {**query, "user": user}
        given = {"error": error, "error_description": "Not today"} if error else {"code": code}
        mark = "#" if query.get("response_mode") == "fragment" and "fragment" in self.modes else "?"
        told = {**given, "state": query["state"], "iss": self.issuer}
        _redirect(handler, f"{query['redirect_uri']}{mark}{urlencode(told)}")

    def post(self, handler: BaseHTTPRequestHandler) -> None:
        """The form where people log in, or the token endpoint."""
        url = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.asked.append(url.path)
        if url.path.endswith("/auth"):
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if form["who"] in self.claims:
                self.sessions.add(form["who"])
            self._send_back(handler, query, form["who"], "" if form["who"] in self.claims else "access_denied")
            return
        self.hangs.wait(120)
        self.forms.append(form)
        if self.status != 200:
            _answer(handler, self.status, b"down")
            return
        told = self._tokens(form, handler.headers.get("Authorization"))
        _answer(handler, 400 if "error" in told else 200, json.dumps(told).encode())

    def _tokens(self, form: dict[str, str], authorization: str | None) -> dict[str, Any]:
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{quote_plus(self.secret)}".encode()).decode()
        is_basic = "client_secret_basic" in self.methods
        if self.secret and (authorization != basic if is_basic else form.get("client_secret") != self.secret):
            return {"error": "invalid_client"}
        if form["grant_type"] == "refresh_token":
            user = self._refreshing.pop(form["refresh_token"], None)
            return {"error": "invalid_grant"} if user is None else self._told(user, None)
        asked = self._codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return {"error": "invalid_grant", "error_description": "Code not valid"}
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if digest != asked["code_challenge"]:
            return {"error": "invalid_grant", "error_description": "PKCE verification failed"}
        return self._told(asked["user"], asked["nonce"])

    def _told(self, user: str, nonce: str | None) -> dict[str, Any]:
        refresh = secrets.token_urlsafe()
        self._refreshing[refresh] = user
        now_s = int(time.time())
        said = {
            "iss": self.issuer,
            "sub": f"number of {user}",
            "aud": CLIENT,
            "iat": now_s,
            "exp": now_s + self.lasts_s,
        }
        said |= {"nonce": nonce, "at_hash": "x", "typ": "ID", "preferred_username": user, **self.said}
        access = self.token(user) if self.access_tokens_are_jwts else secrets.token_urlsafe()
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.lasts_s,
            "refresh_token": refresh,
            "id_token": self.signed(**{**self.claims.get(user, {}), **said}),
        }


def _answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "application/json") -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _redirect(handler: BaseHTTPRequestHandler, url: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", url)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@contextmanager
def provider(certificate: Path | None = None) -> Iterator[Provider]:
    """One that runs, with the users ann (broker-admin) and bob (nothing that the broker knows)."""
    one = Provider(certificate)
    one.claims = {
        "ann": {"realm_access": {"roles": ["broker-admin", "offline_access"]}},
        "bob": {"realm_access": {"roles": ["offline_access"]}},
    }
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield one
    finally:
        one.hangs.set()
        one.server.shutdown()
        thread.join()
        one.server.server_close()
