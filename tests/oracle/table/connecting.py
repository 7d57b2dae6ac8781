"""CONNECT and its answers, heart-beats, and the end of connections."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Answer,
    Beat,
    Closed,
    Connect,
    Counts,
    Disconnect,
    Either,
    HalfClose,
    Open,
    Raw,
    Silent,
    StaysOpen,
    anycast,
    messages,
    subscribe,
)
from tests.oracle.values import ABSENT, PRESENT, Contains


def _beats(asked: str, answer: str, acceptor: str = "stomp") -> Connect:
    return Connect(headers={"heart-beat": asked}, answer={"heart-beat": answer}, acceptor=acceptor)


def _offers(offered: str, chosen: str) -> Connect:
    return Connect(version=offered, answer={"version": chosen})


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "versions",
        "the highest version that both speak, whatever the order",
        (
            _offers("1.0,1.1,1.2", "1.2"), _offers("1.2,1.1,1.0", "1.2"), _offers("1.1", "1.1"), _offers("1.0", "1.0"),
            _offers("1.1,9.9", "1.1"),
        ),
    ),
    Scenario(
        "version_missing",
        "without accept-version it is 1.0",
        (Connect(version=None, answer={"version": ABSENT}),),
    ),
    Scenario(
        "version_blanks",
        "blanks in accept-version",
        (
            Either(
                ours=(_offers("1.1, 1.2", "1.2"), _offers("1.0 ,1.1", "1.1")),
                artemis=(_offers("1.1, 1.2", "1.1"), _offers("1.0 ,1.1", "1.1")),
            ),
        ),
        departures=("version-blanks",),
    ),
    Scenario(
        "version_unknown",
        "no version in common: ERROR names those there are, and the connection ends",
        (
            Open(), Raw(b"CONNECT\naccept-version:3.0\nhost:x\n\n\0"),
            Answer("ERROR", {"version": Contains("1.0,1.1,1.2")}), Closed(),
        ),
    ),
    Scenario(
        "stomp_command",
        "STOMP means CONNECT from 1.1 on",
        (Connect(command="STOMP"), Connect(command="STOMP", version="1.1")),
    ),
    Scenario(
        "stomp_command_10",
        "STOMP without accept-version, which means 1.0",
        (
            Open(), Raw(b"STOMP\nhost:x\n\n\0"), Answer("ERROR"),
            Either(ours=(Closed(),), artemis=(Silent(),)),
        ),
        departures=("stomp-of-10",),
    ),
    Scenario(
        "passcode_alone",
        "a passcode without a login",
        (
            Open(), Raw(b"CONNECT\naccept-version:1.2\nhost:x\npasscode:secret\n\n\0"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Answer("CONNECTED"), StaysOpen())),
        ),
        departures=("passcode-alone",),
    ),
    Scenario(
        "connected_headers",
        "CONNECTED has version, session and server; heart-beat only when the client named one",
        (
            Connect(answer={"version": "1.2", "session": PRESENT, "server": PRESENT, "heart-beat": ABSENT}),
            Connect(headers={"heart-beat": "0,0"}, answer={"heart-beat": PRESENT}),
            Connect(answer={"server": ABSENT}, acceptor="numbered"),
        ),
    ),
    Scenario(
        "connect_receipt",
        "a receipt on CONNECT is answered in CONNECTED, and a request-id too",
        (Connect(headers={"receipt": "r7", "request-id": "q8"}, answer={"receipt-id": "r7", "response-id": "q8"}),),
    ),
    Scenario(
        "connect_line_ends",
        "a CONNECT with CRLF line ends",
        (
            Open(), Raw(b"CONNECT\r\naccept-version:1.2\r\nhost:x\r\n\r\n\0"), Answer("CONNECTED", {"version": "1.2"}),
            StaysOpen(),
        ),
    ),
    Scenario(
        "connect_by_bytes",
        "a CONNECT that comes byte by byte, with empty lines before it",
        (
            Open(), Raw(b"CONNECT\naccept-version:1.1\nhost:x\n\n\0\n\n", pieces=True),
            Answer("CONNECTED", {"version": "1.1"}), StaysOpen(),
        ),
    ),
    Scenario(
        "connect_twice",
        "a second CONNECT",
        (
            Connect(), Raw(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Answer("CONNECTED"), StaysOpen())),
        ),
        departures=("connect-twice",),
    ),
    Scenario(
        "frame_before_connect",
        "a frame before CONNECT",
        (
            Open(), Raw(b"SEND\ndestination:early\n\nm\0"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("before-connect",),
    ),
    Scenario(
        "heart_beats",
        "the answer to heart-beat",
        (
            _beats("0,0", "0,30000"), _beats("1,0", "0,500"), _beats("1,1", "500,500"),
            _beats("500,1000", "1000,500"),
        ),
    ),
    Scenario(
        "heart_beats_clamped",
        "connectionTtlMin and connectionTtlMax bound the answer",
        (_beats("1,0", "0,2500", "clamped"), _beats("20000,0", "0,5000", "clamped")),
    ),
    Scenario(
        "heart_beat_malformed",
        "a heart-beat that is not two numbers is refused",
        (
            Open(), Raw(b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:often\n\n\0"), Answer("ERROR"), Closed(),
        ),
    ),
    Scenario(
        "heart_beat_blanks",
        "blanks in heart-beat",
        (
            Open(), Raw(b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat: 1000 , 1000\n\n\0"),
            Either(
                ours=(Answer("CONNECTED", {"heart-beat": "1000,1000"}), StaysOpen()),
                artemis=(Answer("ERROR"), Closed()),
            ),
        ),
        departures=("heart-beat-text",),
    ),
    Scenario(
        "heart_beat_negative",
        "a heart-beat below 0",
        (
            Open(), Raw(b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:-1,0\n\n\0"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Answer("CONNECTED"), StaysOpen())),
        ),
        departures=("heart-beat-text",),
    ),
    Scenario(
        "heart_beat_10",
        "in STOMP 1.0 there are no heart-beats",
        (Connect(version=None, headers={"heart-beat": "1000,1000"}, answer={"heart-beat": ABSENT}),),
    ),
    Scenario(
        "heart_beat_sent",
        "the broker's heart-beats come, also when nothing else happens",
        (Connect(headers={"heart-beat": "0,500"}, answer={"heart-beat": Contains("500,")}), Beat()),
    ),
    Scenario(
        "heart_beat_missed",
        "a client that promised heart-beats and is silent gets ERROR and is closed",
        (Connect(headers={"heart-beat": "200,0"}, acceptor="impatient"), Answer("ERROR"), Closed()),
    ),
    Scenario(
        "silent_client",
        "connectionTtl of the acceptor holds for clients without heart-beats",
        (Connect(acceptor="impatient"), Answer("ERROR"), Closed()),
    ),
    Scenario(
        "disconnect",
        "DISCONNECT is answered before the connection ends",
        (Connect(), Disconnect(), Connect(version="1.1"), Disconnect(), Connect(version="1.0"), Disconnect()),
    ),
    Scenario(
        "half_close",
        "what was sent before a half-close is carried out",
        (
            Connect("c"), Connect("d"), subscribe("half", who="d", headers={"subscription-type": "ANYCAST"}),
            Raw(b"SEND\ndestination:half\ndestination-type:ANYCAST\n\nlast words\0"), HalfClose(),
            messages("last words", who="d"),
        ),
    ),
    Scenario(
        "vanished_mid_frame",
        "half a frame of a client that is gone has no effect",
        (
            Connect("c"), Connect("d"), anycast("half.frame", "whole", who="d"),
            Raw(b"SEND\ndestination:half.frame\ndestination-type:ANYCAST\n\nhal"), HalfClose(), Closed(),
            Counts("half.frame", 1),
        ),
        addresses=(xml.anycast("half.frame"),),
    ),
    Scenario(
        "unknown_command",
        "an unknown command, also a lower-case one, is an error that ends the connection",
        tuple(
            step
            for version in ("1.1", "1.2")
            for command in (b"HELLO", b"send")
            for step in (
                Connect(version=version), Raw(command + b"\ndestination:any\n\nm\0"), Answer("ERROR"), Closed(),
            )
        ),
    ),
    Scenario(
        "unknown_command_like_send",
        "an unknown command that begins with the letter of a known one",
        (
            Connect(), Raw(b"SHOUT\ndestination:any\n\nm\0"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("unknown-command",),
    ),
    Scenario(
        "passcode_literal",
        "CONNECT is not unescaped: a backslash in the passcode is one",
        (Connect(headers={"login": "me", "passcode": "a\\qb:c"}), StaysOpen()),
    ),
)  # fmt: skip
