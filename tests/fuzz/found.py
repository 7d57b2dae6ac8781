"""What fuzzers found, made small: each once did harm, and is judged in every run."""

from __future__ import annotations

from typing import NamedTuple

from tests.fuzz.fuzzing import Input


class Found(NamedTuple):
    """``name`` says what the input did."""

    fuzzer: str
    name: str
    input: Input


FOUND: tuple[Found, ...] = (
    Found(
        "login.config",
        "a file name of 300 bytes was an unexpected error",
        Input(
            0,
            b"x{org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule requisite\n"
            b'org.apache.activemq.jaas.properties.user="' + b"x" * 300 + b'";};',
        ),
    ),
    Found(
        "frames",
        "the empty line of a CR LF frame shared its last byte with two line feeds that follow each other",
        Input(0, b"ABORT\n\n\x00ABORT\r\n\r\n\n\x00"),
    ),
    Found(
        "frames",
        "part of a body was kept after the error for its size",
        Input(1630, b"SUBSCRIBE\nr:\n\n" + b"x" * 401),
    ),
    Found(
        "frames",
        "the error about an undefined escape had its control character",
        Input(4955, b"SUBSCRIBE\n\\\x14:\n\n"),
    ),
    Found(
        "login.config",
        "a NUL in the name of a file was an error that nobody expected",
        Input(
            0,
            b"x{org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule optional\n"
            b'org.apache.activemq.jaas.properties.user="\x00";};',
        ),
    ),
    Found(
        "users",
        "the empty line before a new user joined the carriage return before it to one line end",
        Input(0, b"\nx\\\r"),
    ),
    Found(
        "http",
        "a version that is no number made a scrape fail",
        Input(
            40008,
            b"GET /metrics HTTP/1.1\nHost:localhost\nAccept:application/openmetrics-text;version=x\n\n",
        ),
    ),
)
