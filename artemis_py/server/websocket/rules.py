"""The rules of WebSocket on an acceptor, and the codes with which one is closed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast, final

from artemis_py.config.settings import AcceptorConfig

if TYPE_CHECKING:
    from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
    from websockets.server import ServerProtocol
    from websockets.typing import Origin, Subprotocol


# ---- codes -----------------------------------------------------------------------------------------------------------
#
# Why a WebSocket is closed (RFC 6455, section 7.4.1).


NORMAL: Final = 1000
GOING_AWAY: Final = 1001
INVALID: Final = 1007
POLICY: Final = 1008
TOO_BIG: Final = 1009
INTERNAL: Final = 1011


# ---- rules -----------------------------------------------------------------------------------------------------------
#
# What an acceptor's parameters say about WebSocket.


SUBPROTOCOLS: Final = cast("tuple[Subprotocol, ...]", ("v12.stomp", "v11.stomp", "v10.stomp"))
"""As registered with IANA, the highest first."""
ANY_ORIGIN: Final = "*"
_WINDOW_BITS: Final = 12
_LIBRARY_LOG: Final = logging.getLogger("artemis_py.websocket")
_LIBRARY_LOG.setLevel(logging.CRITICAL + 1)  # what it has to say, the broker answers, counts or raises itself


@final
class WebSocketRules:
    """The rules of one acceptor. ``is_text`` is None if ``webSocketEncoderType`` is not set: then the broker sends what
    the client sends. ``origins`` are the pages that may connect; empty: all.
    """

    __slots__ = ("_extensions", "frame_bytes_max", "is_text", "origins")

    def __init__(
        self,
        *,
        is_text: bool | None = None,
        frame_bytes_max: int = 65536,
        compresses: bool = False,
        origins: Sequence[str] = (),
    ) -> None:
        self.is_text = is_text
        self.frame_bytes_max = frame_bytes_max
        self.origins: list[Origin | None] | None = None
        if origins and ANY_ORIGIN not in origins:
            # no Origin is no browser, and a program can send any
            self.origins = [None, *(cast("Origin", origin.rstrip("/")) for origin in origins)]
        self._extensions = [_deflate()] if compresses else None

    @staticmethod
    def of(acceptor: AcceptorConfig) -> WebSocketRules:
        """The rules that an acceptor's parameters set."""
        encoder = acceptor.params.get("webSocketEncoderType")
        return WebSocketRules(
            is_text=None if encoder is None else encoder.strip().lower() == "text",
            frame_bytes_max=acceptor.int_param("webSocketMaxFramePayloadLength"),
            compresses=acceptor.bool_param("webSocketCompressionSupported"),
            origins=acceptor.list_param("allowedOrigins"),
        )

    def new_protocol(self) -> ServerProtocol:
        """The reading side of one connection. A message may have any length: its bytes go on as they come."""
        from websockets.server import ServerProtocol

        return ServerProtocol(
            origins=self.origins,
            extensions=self._extensions,
            subprotocols=SUBPROTOCOLS,
            select_subprotocol=_select,
            max_size=(None, self.frame_bytes_max),
            logger=_LIBRARY_LOG,
        )


def _select(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The highest version that the client offers; None, without a refusal, if there is none."""
    return next((name for name in SUBPROTOCOLS if name in offered), None)


def _deflate() -> ServerPerMessageDeflateFactory:
    """Small windows and no memory between messages sent: many connections may compress."""
    from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

    return ServerPerMessageDeflateFactory(
        server_no_context_takeover=True,
        server_max_window_bits=_WINDOW_BITS,
        client_max_window_bits=_WINDOW_BITS,
        compress_settings={"memLevel": 5, "level": 1},
    )
