"""Finds the route of a path, and the methods it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from artemis_py.server.http.requests import Handler, Request

_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Route:
    """A path and its handlers by method; the handler of GET also answers HEAD. A part ``{name}`` of the path matches
    any text without a slash, which the handler finds in the request's parameters. ``/*`` at the end of the path matches
    all paths below it that no other route has.
    """

    path: str
    handlers: Mapping[str, Handler]
    operations: Mapping[str, str] = field(default_factory=dict)
    """By method what the handler does, in the names of Artemis' management (``broker.getLog``): who may use it is
    granted under this name. A name in braces is that parameter. Where users log in, nobody may use a method that has
    none.
    """
    is_open: bool = False
    """Is it answered for any host name, even while all regular connections are in use?"""
    needs_login: bool = True
    """Where users log in: must one do so? What has no data of the broker needs no login."""
    checks_itself: bool = False
    """Does its handler know which permission a request needs? Then whoever has logged in gets there."""
    open_methods: frozenset[str] = frozenset()
    """Those that need no login even where the others do: a browser asks with OPTIONS before it sends one."""
    pages: Callable[[str], bool] | None = None
    """May web pages of this origin use it, besides those of the acceptor's hosts?"""
    still_may: Callable[[Request], bool] | None = None
    """Of a handler that checks permissions itself and may answer for long: has the user of a request still what the
    answer needs? It is asked when rights have changed.
    """
    takes_messages: bool = False
    """May the bodies of its requests be as large as messages?"""
    takes_lines: bool = False
    """May they be as large as the line of a message in an export? Base64 makes three bytes four."""

    def handler(self, method: str) -> Handler | None:
        """The handler of a method, or None."""
        return self.handlers.get("GET" if method == "HEAD" else method)

    def operation(self, method: str) -> str | None:
        """What the handler of a method does, or None."""
        return self.operations.get("GET" if method == "HEAD" else method)

    def takes_body(self, method: str) -> bool:
        """Is the body of such a request read? Otherwise it is skipped."""
        return method in _WITH_BODY and method in self.handlers

    @property
    def allowed(self) -> str:
        """The methods for the header Allow."""
        return ", ".join(name for one in self.handlers for name in (("GET", "HEAD") if one == "GET" else (one,)))


class Routes:
    """All routes of a service."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, Route] = {}
        self._patterns: list[tuple[list[str], Route]] = []
        self._below: list[tuple[str, Route]] = []
        for route in routes:
            if route.path.endswith("/*"):
                self._below.append((route.path[:-1], route))
            elif "{" in route.path:
                self._patterns.append((route.path.split("/"), route))
            else:
                self._plain[route.path] = route
        self._below.sort(key=lambda below: len(below[0]), reverse=True)

    def find(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a path as sent, with its parameters; None if there is none."""
        route = self._plain.get(path)
        if route is not None:
            return route, {}
        parts = path.split("/")
        for pattern, its_route in self._patterns:
            parameters = _matched(pattern, parts)
            if parameters is not None:
                return its_route, parameters
        below = next((route for prefix, route in self._below if path.startswith(prefix)), None)
        return None if below is None else (below, {})


def _matched(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    parameters: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            if not part:
                return None
            parameters[wanted[1:-1]] = unquote(part)
        elif wanted != part:
            return None
    return parameters
