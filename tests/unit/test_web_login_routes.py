"""Logins of the console at a provider, as HTTP: how many at a time, and what comes of what goes wrong there."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import Mock

import pytest

from artemis_py.errors import AuthenticatorError, BadRequestError, CredentialsRefusedError
from artemis_py.security.identity import WebLogin
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.http.requests import Request, Response
from artemis_py.server.http.web_login_routes import ASKED_MAX, ASKED_OF_ONE_MAX, PATH, WebLoginRoutes

WAIT_S: Final = 120.0
OWN: Final = "https://console.example"
SECRET: Final = "the code"


@dataclass(eq=False)
class There(WebLogin):
    """A provider that the test controls."""

    name: str = "Shop"
    failure: Exception | None = None
    answers_at: threading.Event | None = None
    """None: at once."""
    given: list[Mapping[str, str]] = field(default_factory=list)

    authenticate = Mock(side_effect=AssertionError("nobody logs in by password"))

    def redeem(self, given: Mapping[str, str]) -> dict[str, Any]:
        self.given.append(given)
        assert self.answers_at is None or self.answers_at.wait(WAIT_S), "the test never let it answer"
        if self.failure is not None:
            raise self.failure
        return {"user": "ann"}

    begin = redeem


class Stage:
    """The routes beside a provider; ``told`` is the log."""

    def __init__(self) -> None:
        self.there = There()
        self.told: list[str] = []
        loop = asyncio.get_running_loop()
        self.routes = {
            route.path: route
            for route in WebLoginRoutes(
                loop, lambda: [self.there, There("Other")], RateLimitedLog(self.told.append)
            ).routes()
        }

    def post(self, address: str = "192.0.2.1:4000", name: str = "Shop", **body: Any) -> Response | Awaitable[Response]:
        content = json.dumps({"redirectUri": f"{OWN}/ui/", "code": SECRET, **body}).encode()
        handler = self.routes[f"{PATH}/{{name}}/tokens"].handlers["POST"]
        headers = {"origin": OWN}
        return handler(Request("POST", PATH, headers=headers, parameters={"name": name}, body=content, address=address))


async def status(answer: Response | Awaitable[Response]) -> tuple[int, Any]:
    """Status and JSON, when it is there."""
    response = answer if isinstance(answer, Response) else await asyncio.wait_for(answer, WAIT_S)
    assert isinstance(response.body, bytes)
    return response.status, json.loads(response.body)


@pytest.mark.asyncio
async def test_what_goes_well() -> None:
    stage = Stage()
    assert await status(stage.routes[PATH].handlers["GET"](Request("GET", PATH))) == (200, ["Shop", "Other"])
    assert await status(stage.post()) == (200, {"user": "ann"})
    assert stage.there.given == [{"redirectUri": f"{OWN}/ui/", "code": SECRET}]
    assert stage.told == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("failure", "expected", "words"),
    [
        (BadRequestError("the request lacks code"), 400, "the request lacks code"),
        (CredentialsRefusedError("Code not valid"), 403, "Code not valid"),
        (AuthenticatorError("it does not answer"), 503, "it does not answer"),
        (RuntimeError(f"a fault with {SECRET}"), 500, "it failed with RuntimeError"),
    ],
)
async def test_what_goes_wrong(failure: Exception, expected: int, words: str) -> None:
    stage = Stage()
    stage.there.failure = failure
    assert await status(stage.post()) == (expected, {"error": words})
    assert stage.told == [f"warning: login at Shop failed: {words}"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "name", "expected"),
    [
        ({"redirectUri": "https://evil.example/ui/"}, "Shop", 400),
        ({"redirectUri": "https://[x"}, "Shop", 400),
        ({"code": 1}, "Shop", 400),
        ({"colour": "red"}, "Shop", 400),
        ({}, "Nobody", 404),
    ],
)
async def test_what_nobody_is_asked_about(body: dict[str, Any], name: str, expected: int) -> None:
    stage = Stage()
    assert (await status(stage.post(name=name, **body)))[0] == expected
    assert stage.there.given == []


@pytest.mark.asyncio
async def test_a_provider_that_hangs_holds_a_few_threads() -> None:
    stage = Stage()
    may_answer = stage.there.answers_at = threading.Event()
    pending = []
    for peer in range(ASKED_MAX // ASKED_OF_ONE_MAX):
        pending += [stage.post(f"[2001:db8:0:{peer}::{number}]:1") for number in range(ASKED_OF_ONE_MAX)]
        full = await status(stage.post(f"[2001:db8:0:{peer}::ffff]:1"))
        assert full == (503, {"error": "too many log in at once; try again later"}), "one peer has its share"
    assert (await status(stage.post("198.51.100.1:1")))[0] == 503, "and all have theirs"
    may_answer.set()
    assert [(await status(each))[0] for each in pending] == [200] * ASKED_MAX
    assert (await status(stage.post("198.51.100.1:1")))[0] == 200


@pytest.mark.asyncio
async def test_a_client_that_leaves_frees_its_thread_when_that_is_done() -> None:
    stage = Stage()
    may_answer = stage.there.answers_at = threading.Event()
    for _ in range(ASKED_OF_ONE_MAX):
        answer = stage.post()
        assert isinstance(answer, asyncio.Future)
        answer.cancel()
    assert (await status(stage.post()))[0] == 503
    may_answer.set()
    while (await status(stage.post()))[0] != 200:
        await asyncio.sleep(0)
