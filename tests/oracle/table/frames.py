"""Frames on the wire: headers, escapes, bodies, line ends, and what is wrong with some of them."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Answer,
    Closed,
    Connect,
    Counts,
    Either,
    Raw,
    Refused,
    Request,
    Silent,
    StaysOpen,
    Step,
    anycast,
    messages,
    send,
    subscribe,
)
from tests.oracle.values import ABSENT, PRESENT, Contains, Expected

AUTO = "auto"


def _reader(name: str, version: str = "1.2", sender: str | None = None) -> tuple[Step, ...]:
    """``c`` sends in one version, ``d`` reads in another."""
    return (
        Connect("c", sender or version), Connect("d", version),
        subscribe(name, who="d", ack=AUTO, window=None, headers={"subscription-type": "ANYCAST"}),
    )  # fmt: skip


def _raw_send(name: str, headers: bytes = b"", body: bytes = b"m") -> Raw:
    return Raw(b"SEND\ndestination:" + name.encode() + b"\ndestination-type:ANYCAST\n" + headers + b"\n" + body + b"\0")


def _seen(body: str, **headers: Expected) -> Step:
    return messages(body, who="d", headers=headers)


HEADERS: tuple[Scenario, ...] = (
    Scenario(
        "message_headers",
        "what every MESSAGE has",
        (
            *_reader("wire.headers"), anycast("wire.headers", "m"),
            messages(
                "m",
                who="d",
                headers={
                    "subscription": "s", "message-id": PRESENT, "destination": "wire.headers", "expires": "0",
                    "redelivered": "false", "priority": "4", "persistent": "false", "timestamp": PRESENT,
                    "content-length": "1", "ack": ABSENT,
                },
            ),
        ),
    ),
    Scenario(
        "passed_headers",
        "what a sender says of a message is what its reader sees",
        (
            *_reader("wire.passed"),
            anycast(
                "wire.passed", "m",
                headers={
                    "persistent": "true", "priority": "7", "correlation-id": "c-1", "type": "t-1",
                    "reply-to": "answers",
                    "content-type": "text/plain;x=1", "mine": "ours", "empty": "",
                },
            ),
            messages(
                "m",
                who="d",
                headers={
                    "persistent": "true", "priority": "7", "correlation-id": "c-1", "type": "t-1",
                    "reply-to": "answers",
                    "content-type": "text/plain;x=1", "mine": "ours", "empty": "",
                },
            ),
        ),
    ),
    Scenario(
        "hop_headers",
        "what concerns only the sender's connection",
        (
            *_reader("wire.hop"), anycast("wire.hop", "m"),
            Either(ours=(_seen("m", receipt=ABSENT),), artemis=(_seen("m", receipt=PRESENT),)),
        ),
        departures=("hop-headers",),
    ),
    Scenario(
        "forged_headers",
        "a sender cannot choose what the broker says of a message",
        (
            *_reader("wire.forged"),
            _raw_send("wire.forged", b"message-id:forged\nsubscription:forged\nredelivered:true\nack:forged\n"),
            messages(
                "m",
                who="d",
                headers={"message-id": PRESENT, "subscription": "s", "redelivered": "false"},
            ),
        ),
    ),
    Scenario(
        "group_id",
        "JMSXGroupID is the group of the message",
        (
            *_reader("wire.group"), anycast("wire.group", "m", headers={"JMSXGroupID": "g1"}),
            messages("m", who="d", headers={"_AMQ_GROUP_ID": "g1"}),
        ),
    ),
    Scenario(
        "amq_message_id",
        "stompEnableMessageId adds the broker's id to a message",
        (
            Connect("c", acceptor="numbered"), Connect("d", acceptor="numbered"), Connect("e"),
            subscribe("wire.numbered", who="d", headers={"subscription-type": "ANYCAST"}),
            anycast("wire.numbered", "m"),
            messages("m", who="d", headers={"amqMessageId": Contains("STOMP")}),
            anycast("wire.numbered", "n", who="e"),
            Either(
                ours=(messages("n", who="d", headers={"amqMessageId": Contains("STOMP")}),),
                artemis=(messages("n", who="d", headers={"amqMessageId": ABSENT}),),
            ),
        ),
        departures=("amq-message-id",),
    ),
    *(
        Scenario(
            f"repeated_header_{version}",
            f"a repeated header in STOMP {version}",
            (
                *_reader(f"wire.repeated.{version}", version),
                _raw_send(f"wire.repeated.{version}", b"x:first\nx:second\n"),
                *(
                    (_seen("m", x="first"),)
                    if version == "1.2"
                    else (Either(ours=(_seen("m", x="first"),), artemis=(_seen("m", x="second"),)),)
                ),
            ),
            departures=() if version == "1.2" else ("repeated-header",),
        )
        for version in ("1.0", "1.1", "1.2")
    ),
    Scenario(
        "blanks",
        "blanks around header values: 1.0 takes the leading ones away, the others none",
        tuple(
            step
            for version, expected in (("1.0", "v "), ("1.1", " v "), ("1.2", " v "))
            for step in (
                *_reader(f"wire.blanks.{version}", version), _raw_send(f"wire.blanks.{version}", b"x: v \n"),
                _seen("m", x=expected),
            )
        ),
    ),
    Scenario(
        "no_content_length_in_10",
        "content-length in STOMP 1.0 tells bytes from text",
        (
            *_reader("wire.text", "1.0"), _raw_send("wire.text"),
            messages("m", who="d", headers={"content-length": ABSENT}),
            _raw_send("wire.text", b"content-length:1\n"), messages("m", who="d", headers={"content-length": "1"}),
        ),
    ),
)  # fmt: skip

ESCAPES: tuple[Scenario, ...] = (
    *(
        Scenario(
            f"escapes_{version}",
            f"headers with every sign that is escaped go through STOMP {version} unchanged",
            (
                *_reader(f"wire.escapes.{version}", version),
                anycast(
                    f"wire.escapes.{version}", "m",
                    headers={"a:b\\c\nd": "1:2\\3\n4" + ("\r5" if version == "1.2" else "")}
                ),
                messages("m", who="d", headers={"a:b\\c\nd": "1:2\\3\n4" + ("\r5" if version == "1.2" else "")}),
            ),
        )
        for version in ("1.1", "1.2")
    ),
    *(
        Scenario(
            f"undefined_escape_{version}_{name}",
            f"an escape that STOMP {version} does not know is an error that ends the connection",
            (Connect(version=version), _raw_send("wire.undefined", b"x:a" + escape + b"\n"), Answer("ERROR"), Closed()),
        )
        for version, name, escape in (
            ("1.1", "t", b"\\tb"), ("1.1", "r", b"\\rb"), ("1.2", "t", b"\\tb"),
        )
    ),
    Scenario(
        "lone_backslash",
        "a backslash at the end of a header line",
        (
            Connect(), _raw_send("wire.lone", b"x:a\\\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("lone-backslash",),
    ),
    Scenario(
        "escape_in_10",
        "a backslash in STOMP 1.0 is one",
        (*_reader("wire.backslash", "1.0"), _raw_send("wire.backslash", b"x:a\\cb:c\n"), _seen("m", x="a\\cb:c")),
    ),
    *(
        Scenario(
            f"colon_in_value_{version}",
            f"a colon as it is in a header's value, STOMP {version}",
            (
                *_reader(f"wire.colon.{version}", version), _raw_send(f"wire.colon.{version}", b"x:a:b\n"),
                *(
                    (_seen("m", x="a:b"),)
                    if version == "1.0"
                    else (Either(ours=(_seen("m", x="a:b"),), artemis=(_seen("m", x="ab"),)),)
                ),
            ),
            departures=() if version == "1.0" else ("colon-in-value",),
        )
        for version in ("1.0", "1.1", "1.2")
    ),
)  # fmt: skip

BODIES: tuple[Scenario, ...] = (
    Scenario(
        "nul_body",
        "a body with NULs, as long as content-length says, and the next frame intact",
        (
            *_reader("wire.nul"), anycast("wire.nul", b"a\0b\0", headers={"content-length": "4"}),
            anycast("wire.nul", "next"), messages(b"a\0b\0", who="d", headers={"content-length": "4"}), _seen("next"),
        ),
    ),
    Scenario(
        "large_body",
        "a body of 300,000 bytes, NULs in it",
        (
            *_reader("wire.large"), anycast("wire.large", b"\0x" * 150_000, headers={"content-length": "300000"}),
            messages(b"\0x" * 150_000, who="d"),
        ),
    ),
    Scenario(
        "by_bytes",
        "two frames and the line feeds between them, byte by byte, a sign of three bytes among them",
        (
            *_reader("wire.slow"),
            Raw(
                "SEND\ndestination:wire.slow\ndestination-type:ANYCAST\nx:€\n\n€1\0\n\r\n\n"
                "SEND\r\ndestination:wire.slow\r\ndestination-type:ANYCAST\n\r\n2\0".encode(),
                pieces=True,
            ),
            _seen("€1", x="€"), _seen("2"),
        ),
    ),
    Scenario(
        "many_frames_at_once",
        "several frames in one segment keep their order",
        (
            *_reader("wire.many"),
            Raw(b"".join(b"SEND\ndestination:wire.many\ndestination-type:ANYCAST\n\n%d\0" % i for i in range(50))),
            messages(*(str(i) for i in range(50)), who="d"),
        ),
    ),
    Scenario(
        "empty_body",
        "a message without a body",
        (*_reader("wire.empty"), anycast("wire.empty", ""), _seen("")),
    ),
    Scenario(
        "short_content_length",
        "content-length is less than the body that follows",
        (
            *_reader("wire.short"), _raw_send("wire.short", b"content-length:1\n", b"abc"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(_seen("a"), StaysOpen())),
        ),
        departures=("content-length",),
    ),
    Scenario(
        "unreadable_content_length",
        "content-length is no number",
        (
            Connect(), _raw_send("wire.unreadable", b"content-length:many\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("content-length",),
    ),
    Scenario(
        "body_of_another_frame",
        "a frame other than SEND with a body",
        (
            Connect("c"),
            Either(
                ours=(Refused(Request("BEGIN", {"transaction": "t"}, bodies=(b"body",)), closes=True),),
                artemis=(Request("BEGIN", {"transaction": "t"}, bodies=(b"body",)), StaysOpen()),
            ),
        ),
        departures=("body-of-another-frame",),
    ),
    Scenario(
        "carriage_return_inside",
        "a carriage return inside a header in STOMP 1.2",
        (
            Connect(), _raw_send("wire.cr", b"x:a\rb\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("carriage-return",),
    ),
    Scenario(
        "no_colon",
        "a header line without a colon",
        (
            Connect(), _raw_send("wire.colonless", b"nonsense\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(Silent(),)),
        ),
        departures=("header-without-colon",),
    ),
    Scenario(
        "no_name",
        "a header line without a name",
        (
            *_reader("wire.unnamed"), _raw_send("wire.unnamed", b":value\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(_seen("m"),)),
        ),
        departures=("header-without-name",),
    ),
    Scenario(
        "negative_content_length",
        "content-length below 0",
        (
            *_reader("wire.negative"), _raw_send("wire.negative", b"content-length:-1\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(_seen("m"),)),
        ),
        departures=("content-length",),
    ),
    Scenario(
        "not_utf8",
        "a header that is no UTF-8",
        (
            *_reader("wire.utf8"), _raw_send("wire.utf8", b"x:\xff\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(_seen("m", x="\ufffd"),)),
        ),
        departures=("not-utf8",),
    ),
    Scenario(
        "utf8",
        "names, values and bodies in any alphabet",
        (*_reader("wire.ü"), anycast("wire.ü", "größer €", headers={"ä": "ö"}), _seen("größer €", ä="ö")),
    ),
    Scenario(
        "many_headers",
        "three hundred headers",
        (
            *_reader("wire.hundreds"), anycast("wire.hundreds", "m", headers={f"h{n}": "v" * 50 for n in range(300)}),
            messages("m", who="d", headers={f"h{n}": "v" * 50 for n in range(300)}),
        ),
    ),
    Scenario(
        "long_header",
        "a header line of 20,000 bytes",
        (
            *_reader("wire.long"), _raw_send("wire.long", b"x:" + b"y" * 20_000 + b"\n"),
            Either(ours=(Answer("ERROR"), Closed()), artemis=(_seen("m", x="y" * 20_000),)),
        ),
        departures=("limits",),
    ),
)  # fmt: skip

ERRORS: tuple[Scenario, ...] = (
    *(
        Scenario(
            f"error_{version}",
            f"after an ERROR, STOMP {version} {'ends the connection' if version == '1.2' else 'goes on'}",
            (
                Connect(version=version),
                Refused(Request("COMMIT", {"transaction": "never begun"}), closes=version == "1.2"),
            ),
        )
        for version in ("1.0", "1.1", "1.2")
    ),
    Scenario(
        "send_without_destination",
        "SEND without a destination",
        (
            Connect("c", "1.2"), Refused(Request("SEND", {}, bodies=(b"m",)), closes=True),
        ),
    ),
    *(
        Scenario(
            f"not_a_number_{header}",
            f"{header} is no number",
            (Connect("c", "1.1"), Refused(anycast("wire.number", "m", headers={header: "soon"}), closes=False)),
        )
        for header in ("priority", "expires", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME")
    ),
    Scenario(
        "priority_range",
        "a priority beyond 9, and one below 0",
        (
            Connect("c", "1.1"),
            Either(
                ours=tuple(
                    Refused(anycast("wire.range", "m", headers={"priority": priority}), closes=False)
                    for priority in ("12", "-1")
                ),
                artemis=tuple(
                    anycast("wire.range", "m", headers={"priority": priority}) for priority in ("12", "-1")
                ),
            ),
        ),
        addresses=(xml.anycast("wire.range"),),
        departures=("priority-range",),
    ),
    Scenario(
        "receipts",
        "every frame can have a receipt, its id comes back as it was",
        (
            Connect(),
            Raw(b"SEND\ndestination:wire.receipts\nreceipt:a\\cb\\nc\n\nm\0"),
            Answer("RECEIPT", {"receipt-id": "a:b\nc"}),
            Raw(b"SUBSCRIBE\ndestination:wire.receipts\nid:1\nreceipt:2\n\n\0"), Answer("RECEIPT", {"receipt-id": "2"}),
            Raw(b"UNSUBSCRIBE\nid:1\nreceipt:3\n\n\0"), Answer("RECEIPT", {"receipt-id": "3"}),
            Raw(b"BEGIN\ntransaction:t\nreceipt:4\n\n\0"), Answer("RECEIPT", {"receipt-id": "4"}),
            Raw(b"COMMIT\ntransaction:t\nreceipt:5\n\n\0"), Answer("RECEIPT", {"receipt-id": "5"}),
        ),
    ),
    Scenario(
        "mixed_versions",
        "sender and reader may speak different versions",
        (
            *_reader("wire.mixed.up", "1.2", sender="1.0"), anycast("wire.mixed.up", "m", headers={"x": "a\\b"}),
            _seen("m", x="a\\b"),
            *_reader("wire.mixed.down", "1.0", sender="1.2"), anycast("wire.mixed.down", "m", headers={"x": "a:b"}),
            _seen("m", x="a:b"), send("wire.mixed.down", "n", headers={"destination-type": "ANYCAST"}), _seen("n"),
            Counts("wire.mixed.down", 0),
        ),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*HEADERS, *ESCAPES, *BODIES, *ERRORS)
