"""A client of STOMP 1.2 that brings messages in: it sends without waiting, and asks for a receipt now and then."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from artemis_py.errors import ArtemisError, PerfError
from artemis_py.message import encode_headers, unescape_header
from artemis_py.perf.reader import FrameReader, ServerFrame
from artemis_py.security.client_login import ClientLogin

_READ_BYTES: Final = 64 * 1024


class Sender:
    """A connection. Each method raises ArtemisError when the broker sends an ERROR, leaves, or is silent too long."""

    def __init__(self, url: str, stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], wait_s: float) -> None:
        self._url = url
        self._reader, self._writer = stream
        self._wait_s = wait_s
        self._frames = FrameReader()
        self._receipt = 0

    @staticmethod
    async def to(
        url: str, host: str, port: int, login: ClientLogin, context: ssl.SSLContext | None, wait_s: float
    ) -> Sender:
        """Connect and log in. Raises ArtemisError."""
        try:
            async with asyncio.timeout(wait_s):
                stream = await asyncio.open_connection(host, port, ssl=context)
        except TimeoutError:
            raise ArtemisError(f"{url} does not answer within {wait_s:g} s") from None
        except OSError as error:
            said = error.strerror or error
            if isinstance(error, ConnectionRefusedError):
                said = "nothing listens there (--stomp URL says where the broker is)"
            raise ArtemisError(f"{url}: {said}") from None
        sender = Sender(url, stream, wait_s)
        headers = [("accept-version", "1.2"), ("host", host)]
        if login.user is not None:
            headers.append(("login", login.user))
        if login.passcode is not None:
            headers.append(("passcode", login.passcode))
        await sender.write(b"CONNECT\n" + encode_headers(headers) + b"\0")
        answer = await sender._next("CONNECTED")
        if answer.command != "CONNECTED":
            raise ArtemisError(f"{url} answers CONNECT with {answer.command}")
        return sender

    async def write(self, data: bytes) -> None:
        """Write a part of a frame, or several of them."""
        self._writer.write(data)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._writer.drain()
        except TimeoutError:
            raise await self._why(f"takes no more bytes since {self._wait_s:g} s; is an address full?") from None
        except OSError as error:
            raise await self._why(f"has closed the connection: {error.strerror or error}") from None

    async def confirmed(self, name: str, wait_s: float | None = None) -> None:
        """Wait for the receipt of this name, so long (None: as long as for everything)."""
        while True:
            answer = await self._next("RECEIPT", wait_s)
            if answer.command == "RECEIPT" and answer.headers.get("receipt-id") == name:
                return

    async def message(self, wait_s: float | None = None) -> ServerFrame:
        """The next MESSAGE."""
        while True:
            answer = await self._next("MESSAGE", wait_s)
            if answer.command == "MESSAGE":
                return answer

    def next_receipt(self) -> str:
        """A name for a receipt."""
        self._receipt += 1
        return f"data-{self._receipt}"

    async def leave(self) -> None:
        """Log out, which confirms everything that was sent."""
        name = self.next_receipt()
        await self.write(b"DISCONNECT\n" + encode_headers([("receipt", name)]) + b"\0")
        await self.confirmed(name)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    async def _next(self, awaited: str, wait_s: float | None = None) -> ServerFrame:
        wait_s = self._wait_s if wait_s is None else min(wait_s, self._wait_s)
        while True:
            try:
                found = self._frames.pop()
            except PerfError as error:
                raise ArtemisError(f"{self._url}: {error}") from None
            if found is not None:
                if found.command == "ERROR":
                    raise ArtemisError(f"{self._url} refuses: {_unescaped(found.text)}")
                return found
            try:
                async with asyncio.timeout(wait_s):
                    data = await self._reader.read(_READ_BYTES)
            except TimeoutError:
                raise ArtemisError(f"{self._url} sent no {awaited} within {wait_s:g} s") from None
            except OSError as error:
                raise ArtemisError(f"{self._url}: {error.strerror or error}") from None
            if not data:
                raise ArtemisError(f"{self._url} closed the connection before {awaited}")
            self._frames.feed(data)

    async def _why(self, otherwise: str) -> ArtemisError:
        """The ERROR that came before a write failed tells more than the failure."""
        try:
            async with asyncio.timeout(1):
                while True:
                    await self._next("ERROR")
        except TimeoutError:
            return ArtemisError(f"{self._url} {otherwise}")
        except ArtemisError as error:
            return error


def _unescaped(text: str) -> str:
    try:
        return unescape_header(text)
    except KeyError:  # the body, which is a part of it, is not escaped
        return text
