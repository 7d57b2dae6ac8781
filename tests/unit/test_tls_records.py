"""TLS records without a socket: what arrives, what is resumed, what ends."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from artemis_py.server.tls.connection import SLICE_BYTES, Records
from tests.kit.certificates import Authority

AUTHORITY = Authority()


class Client:
    """The other side, in memory, after the whole handshake."""

    def __init__(self, context: ssl.SSLContext, records: Records, session: ssl.SSLSession | None = None) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost", session=session)
        is_done = [False, False]
        while not all(is_done):
            try:
                self.object.do_handshake()
                is_done[0] = True
            except ssl.SSLWantReadError:
                pass
            records.feed(memoryview(self.outgoing.read()))
            is_done[1] = records.shake()
            self.incoming.write(records.take())

    def say(self, data: bytes) -> memoryview:
        self.object.write(data)
        return memoryview(self.outgoing.read())


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Those of a server and of a client with a certificate."""
    trust = AUTHORITY.certificate.public_bytes(Encoding.PEM).decode()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(AUTHORITY.issue("broker").pem(tmp_path / "server.pem"))
    server.load_verify_locations(cadata=trust)
    server.verify_mode = ssl.CERT_OPTIONAL
    client = ssl.create_default_context(cadata=trust)
    client.maximum_version = ssl.TLSVersion.TLSv1_2  # the session is there when the handshake is
    client.load_cert_chain(AUTHORITY.issue("client").pem(tmp_path / "client.pem"))
    return server, client


def test_bytes_fill_the_buffer_and_the_rest_waits(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    client = Client(contexts[1], records := Records(contexts[0]))
    buffer = memoryview(bytearray(1_000))
    records.feed(client.say(b"a" * 1_500))
    assert records.read_into(buffer) == (1_000, False)
    assert records.read_into(buffer) == (500, False)
    assert records.read_into(buffer) == (0, False)
    client.incoming.write(records.encrypt(b"b" * 100_000))
    assert b"".join(client.object.read(16_384) for _ in range(7)) == b"b" * 100_000


def test_records_are_read_together_and_a_part_of_one_waits(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    client = Client(contexts[1], records := Records(contexts[0]))
    said = bytes(client.say(b"a" * 300)) + bytes(client.say(b"b" * 300)) + bytes(client.say(b"c" * 300))
    buffer = memoryview(bytearray(1_000))
    records.feed(memoryview(said[:-10]))
    assert records.read_into(buffer) == (600, False)
    assert buffer[:600] == b"a" * 300 + b"b" * 300
    records.feed(memoryview(said[-10:]))
    assert records.read_into(buffer) == (300, False)


def test_a_record_behind_the_first_slice_is_read_with_it(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    client = Client(contexts[1], records := Records(contexts[0]))
    one = bytes(client.say(b"a"))
    fits = SLICE_BYTES - len(one) + 1
    records.feed(memoryview(one))
    assert records.read_into(memoryview(bytearray(1_000))) == (1, False)
    said = [bytes(client.say(data)) for data in (b"a" * fits, b"b" * 100)]
    assert len(said[0]) == SLICE_BYTES
    records.feed(memoryview(b"".join(said)))
    assert records.read_into(memoryview(bytearray(65_536))) == (fits + 100, False)


def test_what_came_before_the_end_is_read_first(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    client = Client(contexts[1], records := Records(contexts[0]))
    said = bytes(client.say(b"the last words"))
    with pytest.raises(ssl.SSLWantReadError):
        client.object.unwrap()
    records.feed(memoryview(said + client.outgoing.read()))
    buffer = memoryview(bytearray(1_000))
    assert records.read_into(buffer) == (14, True)
    client.incoming.write(records.encrypt(b"heard") + records.end())
    assert client.object.read(100) == b"heard"
    assert client.object.unwrap() is None


def test_what_is_no_record_is_refused(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    Client(contexts[1], records := Records(contexts[0]))
    records.feed(memoryview(b"not encrypted at all, but long enough for a record"))
    with pytest.raises(ssl.SSLError):
        records.read_into(memoryview(bytearray(1_000)))


def test_a_certificate_that_has_expired_is_not_resumed(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Client(contexts[1], records := Records(contexts[0]))
    own = records.certificate()
    Client(contexts[1], records := Records(contexts[0]), first.object.session)
    assert records.object.session_reused
    assert records.certificate() == own
    later_s = time.time() + 20 * 365 * 86_400
    monkeypatch.setattr("artemis_py.server.tls.connection.time.time", lambda: later_s)
    with pytest.raises(ssl.SSLError, match="expired since"):
        Client(contexts[1], Records(contexts[0]), first.object.session)
