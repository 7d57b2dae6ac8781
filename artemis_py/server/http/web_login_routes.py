"""Logins of the console at an OpenID provider: ``/ui/logins`` lists the providers, a page sends its user to one, and
the broker trades the code that comes back for tokens. So the page talks to nobody but the broker, and the provider to
no page.

Nobody has logged in yet. Each request that asks a provider has a thread of its own, and of these there are few.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import urlsplit

from artemis_py.errors import AuthenticatorError, BadRequestError, CredentialsRefusedError
from artemis_py.log_codes import LOGIN
from artemis_py.security.identity import WebLogin
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.http.requests import RETRY_LATER, Answer, Request, Response, json_response, parse_json
from artemis_py.server.http.routing import Route
from artemis_py.server.logins.networks import network_of

PATH: Final = "/ui/logins"
ASKED_MAX: Final = 16
"""How many requests may ask providers at a time."""
ASKED_OF_ONE_MAX: Final = 4
"""Those of one peer."""
_WORDS: Final = ("redirectUri", "state", "nonce", "verifier", "code", "issuer", "refreshToken")


@final
class WebLoginRoutes:
    """The routes. ``web_logins`` are those of the configuration in force. For the event loop's thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, web_logins: Callable[[], Sequence[WebLogin]], log: RateLimitedLog
    ) -> None:
        self._loop = loop
        self._web_logins = web_logins
        self._log = log
        self._asked: dict[str, int] = {}
        """How many requests of each network ask a provider now."""

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route(PATH, {"GET": self._list}, needs_login=False),
            Route(f"{PATH}/{{name}}", {"POST": self._begin}, needs_login=False),
            Route(f"{PATH}/{{name}}/tokens", {"POST": self._redeem}, needs_login=False),
        ]

    def _list(self, _request: Request) -> Response:
        return json_response(HTTPStatus.OK, [each.name for each in self._web_logins()])

    def _begin(self, request: Request) -> Answer:
        return self._ask(request, lambda there, given: there.begin(given))

    def _redeem(self, request: Request) -> Answer:
        return self._ask(request, lambda there, given: there.redeem(given))

    def _ask(self, request: Request, what: Callable[[WebLogin, dict[str, str]], dict[str, Any]]) -> Answer:
        name = request.parameters["name"]
        found = next((each for each in self._web_logins() if each.name == name), None)
        if found is None:
            return _problem(HTTPStatus.NOT_FOUND, f"nobody logs in at {name[:100]!r} here")
        try:
            given = _given(request)
        except ValueError as error:
            return _problem(HTTPStatus.BAD_REQUEST, str(error))
        return self._in_thread(request, lambda: what(found, given))

    def _in_thread(self, request: Request, work: Callable[[], dict[str, Any]]) -> Answer:
        """Do it in a thread, if there is one for this peer."""
        network = network_of(request.address.rpartition(":")[0].strip("[]"))
        asked = self._asked.get(network, 0)
        if asked >= ASKED_OF_ONE_MAX or sum(self._asked.values()) >= ASKED_MAX:
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many log in at once; try again later")
        self._asked[network] = asked + 1
        answer: asyncio.Future[Response] = self._loop.create_future()

        def run() -> None:
            response, reason = _carried_out(work)
            with suppress(RuntimeError):  # the broker has stopped
                self._loop.call_soon_threadsafe(done, response, reason)

        def done(response: Response, reason: str) -> None:
            self._asked[network] -= 1
            if not self._asked[network]:
                del self._asked[network]
            if reason:
                name = request.parameters["name"]
                line = f"warning: login at {name} failed: {reason}"
                self._log.write(line, "web login", code=LOGIN, from_=request.address, acceptor=request.acceptor)
            if not answer.done():  # the client may have left
                answer.set_result(response)

        threading.Thread(target=run, name="web login", daemon=True).start()
        return answer


def _carried_out(work: Callable[[], dict[str, Any]]) -> tuple[Response, str]:
    """In a thread: the response, and for the log why it is none that the page wants."""
    try:
        return json_response(HTTPStatus.OK, work()), ""
    except BadRequestError as bad:
        return _problem(HTTPStatus.BAD_REQUEST, str(bad)), str(bad)
    except CredentialsRefusedError as refused:
        return _problem(HTTPStatus.FORBIDDEN, str(refused)), str(refused)
    except AuthenticatorError as unknown:
        return _problem(HTTPStatus.SERVICE_UNAVAILABLE, str(unknown)), str(unknown)
    except Exception as fault:  # its text may contain what was given to log in
        reason = f"it failed with {type(fault).__name__}"
        return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, reason), reason


def _given(request: Request) -> dict[str, str]:
    """The texts of a request; its page names no redirect URI but one of its own origin. Raises ValueError."""
    value = parse_json(request.body)
    if not isinstance(value, dict):
        raise ValueError("the body must be a JSON object")
    for name, text in value.items():
        if name not in _WORDS or not isinstance(text, str):
            raise ValueError(f"the body may have {', '.join(_WORDS)}, all of them texts")
    page = urlsplit(value.get("redirectUri", ""))
    if f"{page.scheme}://{page.netloc}" != request.headers.get("origin"):
        raise ValueError("redirectUri must be a URL of the page that sends it (header Origin)")
    return value


def _problem(status: HTTPStatus, error: str) -> Response:
    response = json_response(status, {"error": error})
    later = RETRY_LATER if status == HTTPStatus.SERVICE_UNAVAILABLE else ()
    return Response(response.status, response.content_type, response.body, later)
