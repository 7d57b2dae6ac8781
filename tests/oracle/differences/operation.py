"""Departures in selectors, configuration and metrics."""

from __future__ import annotations

from typing import Final

from tests.oracle.differences.departure import Departure

SELECTORS: Final = (
    Departure(
        "selector-not",
        "`NOT a = 'x'` in selectors and filters",
        "means `(NOT a) = 'x'`, which is never true",
        "means `NOT (a = 'x')`",
        "SQL",
    ),
    Departure(
        "selector-errors",
        "What cannot be computed, and conversion",
        "an error in one part makes the whole selector false; division by zero is infinite; "
        "`convert_string_expressions:` does not convert `'21.5'` beside a whole number",
        "that part is NULL, and the rest counts; division by zero is NULL; texts that look like numbers are converted",
        "the order of operands should not matter",
    ),
    Departure(
        "selector-words",
        "What may stand in a selector",
        "XPATH; names of ASCII letters; whole numbers of 64 bits, which overflow",
        "no XPATH; letters of any alphabet, quoted names everywhere, whole numbers of any size",
        "the messages of this broker are not parsed as XML; the rest is wider, not different",
        shown=False,
    ),
)

CONFIGURATION: Final = (
    Departure(
        "match-plain-text",
        "Signs of regular expressions in a `match`",
        "are signs of a regular expression: `a+b.*` matches `aab.c`, and `q[1` is an error",
        "stand for themselves",
        "the manual describes wildcards, not regular expressions",
    ),
    Departure(
        "match-escape",
        "A wildcard after a backslash, in a `match` that has other wildcards",
        "part of the regular expression",
        "plain text, the backslash too, as in a match without wildcards",
        "one rule for all matches",
        shown=False,
    ),
    Departure(
        "match-empty",
        "An empty `match` where `literal-match-markers` are set",
        "fails at start",
        "is accepted, and applies to the empty address",
        "it has one meaning",
        shown=False,
    ),
    Departure(
        "match-order",
        "Two matches with `#` of the same length, such as `a.*.#` and `a.b.#`",
        "the order of a hash table decides which one wins",
        "the one wins whose first lone `*` comes later (`a.b.#`), then the order of their texts",
        "a file should mean the same every time",
        shown=False,
    ),
    Departure(
        "routing-any-words",
        "`#` in a routing wildcard followed by `*`, by another `#` or by several words",
        "misses some addresses: `a.#.*` does not get `a.b`",
        "stands for any number of words, at any place",
        "the manual describes no exception",
    ),
    Departure(
        "protocols-case",
        "`protocols=stomp`, in lower case",
        "is not recognised, and then every protocol is served",
        "is STOMP, with a warning",
        "a misspelt restriction should not open everything",
        shown=False,
    ),
    Departure(
        "other-protocols",
        "AMQP, CORE, MQTT and OPENWIRE on an acceptor",
        "are served",
        "are reported once; the acceptor serves STOMP if it names it",
        "files made for Artemis start unchanged",
        shown=False,
    ),
    Departure(
        "http-acceptor",
        "Metrics and health over HTTP",
        "in a web server of its own, configured in `bootstrap.xml`, with a plugin for metrics",
        "on an acceptor: `tcp://127.0.0.1:8161?protocols=HTTP`",
        "one file configures everything",
        shown=False,
    ),
    Departure(
        "open-ports",
        "Ports that other machines can reach, with `security-enabled` true or `sslEnabled=true`",
        "are opened, with passwords and TLS",
        "are not opened: this version checks no passwords and speaks no TLS. It says so at start",
        "never to pretend a protection that is not there",
        shown=False,
    ),
    Departure(
        "include-base",
        "A relative `href` of `xi:include`",
        "starts at the working directory of the process",
        "starts at the file that includes; a note says when Artemis would find another file",
        "a configuration should not depend on where it is started",
        shown=False,
    ),
    Departure(
        "placeholder-loop",
        "A `${name}` whose value leads back to itself",
        "never ends",
        "is an error with file and line",
        "a broken file should be reported",
        shown=False,
    ),
    Departure(
        "document-type",
        "A document type (`<!DOCTYPE`) in broker.xml",
        "is read, entities included, unless switched off",
        "is refused",
        "entities can read files, and fill memory",
        shown=False,
    ),
    Departure(
        "all-problems",
        "A broken broker.xml",
        "the first problem, as a Java exception",
        "every problem at once, as `broker.xml:42: …` with what is allowed and the nearest right name; exit code 2",
        "one look should be enough",
        shown=False,
    ),
    Departure(
        "id-cache-size",
        "`id-cache-size` inside an address-setting",
        "can become the broker's, when it comes first in the file",
        "is that of the address-setting",
        "a setting holds where it stands",
        shown=False,
    ),
    Departure(
        "size-overflow",
        "A size beyond 64 bits",
        "wraps round, to a negative size for example",
        "is an error",
        "a limit should be what the file says",
        shown=False,
    ),
    Departure(
        "acceptor-parameters",
        "Parameters of an acceptor",
        "an unknown one is ignored, a wrong number fails when the first client comes",
        "an unknown one is a warning, a wrong number an error, both before anything listens",
        "mistakes should show at start",
        shown=False,
    ),
    Departure(
        "default-persistent",
        "Messages without a `persistent` header",
        "are not durable",
        "are not durable, unless the acceptor says `defaultPersistent=true`",
        "an addition",
        shown=False,
    ),
)

METRICS: Final = (
    Departure(
        "metric-additions",
        "Families of metrics",
        "those of its manual, all of them gauges without `_total`",
        "the same names, types and labels; further families under new names: replaced messages, turn duration, frames, "
        "bytes, connections by state",
        "dashboards made for Artemis work, and see more if they want",
        shown=False,
    ),
    Departure(
        "metrics-when",
        "`/metrics`",
        "needs the metrics plugin; the address of the broker's notifications has series too",
        "always there on an HTTP acceptor; there are no internal addresses",
        "metrics should not need another download",
        shown=False,
    ),
)
