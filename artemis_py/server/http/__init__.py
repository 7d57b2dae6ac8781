"""A small HTTP/1.1 server inside the broker: metrics, health, and the log for readers elsewhere."""

from __future__ import annotations

from artemis_py.server.http.messages import Handler, HttpLimits, Request, Response
from artemis_py.server.http.routing import Route
from artemis_py.server.http.service import HttpService

__all__ = ["Handler", "HttpLimits", "HttpService", "Request", "Response", "Route"]
