"""A small HTTP/1.1 server inside the broker: metrics and health, GET and HEAD."""

from __future__ import annotations

from artemis_py.server.http.messages import Handler, HttpLimits, Request, Response
from artemis_py.server.http.service import HttpService

__all__ = ["Handler", "HttpLimits", "HttpService", "Request", "Response"]
