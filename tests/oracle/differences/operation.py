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
        "Expressions without a result, and conversion",
        "an error in one part makes the whole selector false; division by zero is infinite; "
        "`convert_string_expressions:` does not convert `'21.5'` beside a whole number",
        "that part is NULL, and the rest counts; division by zero is NULL; strings that look like numbers are "
        "converted",
        "the order of operands should not matter",
    ),
    Departure(
        "selector-words",
        "Syntax of selectors",
        "XPATH; names of ASCII letters; 64-bit integers, which overflow",
        "no XPATH; letters of any alphabet, quoted names everywhere, integers of any size",
        "this broker does not parse messages as XML; the rest is wider, not different",
        shown=False,
    ),
)

CONFIGURATION: Final = (
    Departure(
        "match-plain-text",
        "Regular expression characters in a `match`",
        "keep their special meaning: `a+b.*` matches `aab.c`, and `q[1` is an error",
        "are plain text",
        "the manual describes wildcards, not regular expressions",
    ),
    Departure(
        "match-escape",
        "A wildcard after a backslash, in a `match` with other wildcards",
        "part of the regular expression",
        "plain text, including the backslash, as in a match without wildcards",
        "one rule for all matches",
        shown=False,
    ),
    Departure(
        "match-empty",
        "An empty `match` where `literal-match-markers` are set",
        "fails at start",
        "is accepted, and applies to the empty address",
        "it has one possible meaning",
        shown=False,
    ),
    Departure(
        "match-order",
        "Two matches with `#` of the same length, such as `a.*.#` and `a.b.#`",
        "the order of a hash table decides which one wins",
        "the one whose first lone `*` comes later wins (`a.b.#`), then the lexicographic order",
        "a file should mean the same every time",
        shown=False,
    ),
    Departure(
        "routing-any-words",
        "`#` in a routing wildcard followed by `*`, by another `#` or by several words",
        "misses some addresses: `a.#.*` does not get `a.b`",
        "matches any number of words, at any place",
        "the manual describes no exception",
    ),
    Departure(
        "protocols-case",
        "`protocols=stomp`, in lower case",
        "is not recognised, so every protocol is served",
        "means STOMP, with a warning",
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
        "in a separate web server, configured in `bootstrap.xml`, with a plugin for metrics",
        "on an acceptor: `tcp://127.0.0.1:8161?protocols=HTTP`",
        "one file configures everything",
        shown=False,
    ),
    Departure(
        "open-ports",
        "`needClientAuth=true` without `trustStorePath`; `trustAll`, `verifyHost`, `crcOptions`",
        "are accepted: the port trusts every public authority, or everybody, or asks other servers",
        "the port is not opened, and the start says why",
        "the broker should not pretend to have a protection that it lacks",
        shown=False,
    ),
    Departure(
        "include-base",
        "A relative `href` of `xi:include`",
        "is relative to the working directory of the process",
        "is relative to the including file; a note reports when Artemis would find another file",
        "a configuration should not depend on the directory where the broker starts",
        shown=False,
    ),
    Departure(
        "placeholder-loop",
        "A `${name}` whose value leads back to itself",
        "never ends",
        "is an error with file and line",
        "the broker should report a broken file",
        shown=False,
    ),
    Departure(
        "document-type",
        "A document type (`<!DOCTYPE`) in broker.xml",
        "is read, including entities, unless switched off",
        "is refused",
        "entities can read files, and fill memory",
        shown=False,
    ),
    Departure(
        "graceful-shutdown",
        "`graceful-shutdown-enabled`",
        "a stop waits until every client has disconnected",
        "a stop waits until nothing is in delivery, and delivers nothing more",
        "STOMP has no word that asks a client to go",
        shown=False,
    ),
    Departure(
        "user-lines",
        "A line of a users file that is not whole: without a password, a hash without its `)`, the last "
        "line of a file without a line end",
        "lets in without a password, or with what is left of it",
        "lets nobody in, unless it is surely whole: a hash with its `)`, a role that ends with a user's name which "
        "no other begins with",
        "a full disk, or a copy that broke off, should open no door",
        shown=False,
    ),
    Departure(
        "users-file-worse",
        "A users file that has become empty, or worse than the one in force",
        "counts at once",
        "what was read before stays in force; the log, `/health` and a metric say so",
        "the same",
        shown=False,
    ),
    Departure(
        "jolokia-get-exec",
        "`exec` of Jolokia by GET",
        "executes everything",
        "executes what changes nothing; the rest needs a POST",
        "a picture on any web page sends a GET",
        shown=False,
    ),
    Departure(
        "all-problems",
        "A broken broker.xml",
        "reports the first problem, as a Java exception",
        "reports every problem at once, as `broker.xml:42: …` with the allowed values and the nearest correct name; "
        "exit code 2",
        "one run should be enough",
        shown=False,
    ),
    Departure(
        "id-cache-size",
        "`id-cache-size` inside an address-setting",
        "can become the broker's value, if it comes first in the file",
        "belongs to the address-setting",
        "a setting applies where it is written",
        shown=False,
    ),
    Departure(
        "size-overflow",
        "A size beyond 64 bits",
        "wraps around, for example to a negative size",
        "is an error",
        "a limit should have the value in the file",
        shown=False,
    ),
    Departure(
        "lock-coordinator",
        "`lock-coordinator` of an acceptor",
        "the port is open only while the broker holds the lock",
        "is ignored with a warning: the port is open",
        "this broker is a single node",
        shown=False,
    ),
    Departure(
        "key-password",
        "`keyPassword`",
        "is the password of keys in JKS and JCEKS",
        "of keys in PEM and PKCS12, too",
        "a key may have a password of its own anywhere",
        shown=False,
    ),
    Departure(
        "acceptor-parameters",
        "Parameters of an acceptor",
        "an unknown one is ignored; a wrong number fails when the first client connects",
        "an unknown one is a warning, a wrong number an error, both before the broker listens",
        "mistakes should show at the start",
        shown=False,
    ),
    Departure(
        "default-persistent",
        "Messages without a `persistent` header",
        "are not durable",
        "are not durable, unless the acceptor sets `defaultPersistent=true`",
        "an addition",
        shown=False,
    ),
)

METRICS: Final = (
    Departure(
        "metric-additions",
        "Families of metrics",
        "those of its manual, all of them gauges without `_total`",
        "the same names, types and labels; further families under new names: replaced messages, turn duration, "
        "frames, bytes, connections by state",
        "dashboards made for Artemis work, and can show more",
        shown=False,
    ),
    Departure(
        "metrics-when",
        "`/metrics`",
        "needs the metrics plugin; the address of the broker's notifications also has series",
        "always available on an HTTP acceptor; there are no internal addresses",
        "metrics should not need another download",
        shown=False,
    ),
)
