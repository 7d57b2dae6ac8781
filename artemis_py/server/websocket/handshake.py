"""The HTTP request that asks for a WebSocket, and its answer."""

from __future__ import annotations

from typing import Final, final

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from artemis_py.server.http.request_head import doubt_in, oddity_in
from artemis_py.server.websocket.rules import WebSocketRules

REQUEST_BYTES_MAX: Final = 16384
"""The largest upgrade request; browsers send their cookies in it."""
_GET: Final = b"GET "
_END: Final = b"\r\n\r\n"
_SAYS_STOMP: Final = "This port speaks STOMP, also over WebSocket: open it with a WebSocket client"


@final
class Handshake:
    """Gathers the request and answers it. Afterwards ``response`` is what the client gets, and ``protocol`` reads what
    follows, or is None if the client was turned away.
    """

    __slots__ = ("_request", "_rules", "protocol", "response")

    def __init__(self, rules: WebSocketRules) -> None:
        self.protocol: ServerProtocol | None = None
        self.response = b""
        self._rules = rules
        self._request = bytearray()

    @property
    def held_bytes(self) -> int:
        """What it keeps of the request."""
        return len(self._request)

    def take(self, data: bytes) -> bytes:
        """Add bytes; returns those behind the request, once there is a response."""
        request = self._request
        searched_bytes = max(len(request) - len(_END) + 1, 0)
        request += data
        if not request.startswith(_GET[: len(request)]):
            self._turn_away(426, _SAYS_STOMP)
            return b""
        end = request.find(_END, searched_bytes)
        if max(end, len(request) if end < 0 else 0) > REQUEST_BYTES_MAX:
            self._turn_away(431, f"The headers of the request have more than {REQUEST_BYTES_MAX} bytes")
            return b""
        if end < 0:
            return b""
        rest = bytes(request[end + len(_END) :])
        head, self._request = bytes(request[: end + len(_END)]), bytearray()
        self._answer(head)
        return rest

    def give_up(self, why: str) -> None:
        """The request is not complete, and will not be waited for."""
        self._turn_away(408, why)

    def _answer(self, head: bytes) -> None:
        doubt = oddity_in(head) or doubt_in(head)
        if doubt:
            self._turn_away(400, f"The request cannot be read: {doubt}")
            return
        protocol = self._rules.new_protocol()
        protocol.receive_data(head)
        protocol.data_to_send()
        requests = [event for event in protocol.events_received() if isinstance(event, Request)]
        if not requests:
            refusal = protocol.handshake_exc
            cause = refusal.__cause__ if refusal is not None else None
            self._turn_away(400, f"The request cannot be read: {cause or refusal}")
            return
        response = protocol.accept(requests[0])
        if response.status_code == 101:
            protocol.send_response(response)
            self.response = b"".join(protocol.data_to_send())
            self.protocol = protocol
        elif response.status_code == 426:
            self._turn_away(426, _SAYS_STOMP)
        elif response.status_code == 403:
            origin = requests[0].headers.get("Origin")
            self._turn_away(403, f"Pages of {origin} may not connect (allowedOrigins of the acceptor)")
        else:
            self._turn_away(response.status_code, response.body.decode().strip())

    def _turn_away(self, status: int, why: str) -> None:
        self._request = bytearray()
        body = why.encode("utf-8", "replace") + b"\n"
        headers = Headers()
        if status == 426:
            headers["Upgrade"] = "websocket"
        headers["Connection"] = "Upgrade, close" if status == 426 else "close"
        headers["Content-Type"] = "text/plain; charset=utf-8"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Content-Length"] = str(len(body))
        self.response = Response(status, _PHRASES.get(status, "Refused"), headers, body).serialize()


_PHRASES: Final = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    426: "Upgrade Required",
    431: "Request Header Fields Too Large",
    505: "HTTP Version Not Supported",
}
