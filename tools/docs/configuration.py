"""docs/configuration.md, from the tables of settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from artemis_py.config.problems import CODES
from artemis_py.config.tables.acceptor import HANDSHAKE_SECONDS, PARAMS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import CONNECTOR_PARAMS, BridgeConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import DivertConfig, QueueConfig
from artemis_py.config.tables.fields import (
    HONOURED,
    INT_SIZE,
    JAVA,
    NO_COUNTERS,
    NO_EFFECT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    OFF_OR_INT_SIZE,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_POSITIVE,
    POSITIVE,
    RING,
    Setting,
    settings_of,
)
from artemis_py.config.tables.structured_elements import PARTS

_QUEUE_NOTE: Final = (
    "`durable`, `filter` and `user` are elements inside the queue; the others are attributes. The default of many is "
    "an address-setting of the queue's address. These have the same meaning as theirs:"
)
_CONNECTOR_NOTE: Final = (
    "Stores are of the same kinds as those of acceptors. Other parameters of Artemis' connectors have no effect."
)
_SILENT_NOTE: Final = (
    f"`{HANDSHAKE_SECONDS}` is `handshakeTimeout` in seconds. Other parameters of Artemis' acceptors, about TLS, Java "
    "or other protocols, have no effect."
)
_PLAIN: Final = frozenset(
    {POSITIVE, NOT_NEGATIVE, OFF_OR_POSITIVE, OFF_OR_NOT_NEGATIVE, INT_SIZE, OFF_OR_INT_SIZE, RING, NOT_EMPTY}
)
"""Checks of which the introduction says all."""
_OBVIOUS: Final = frozenset({
    "a queue", "a divert", "a bridge", "its name", "its name; unique", "its name; unique in the whole broker",
    "the selector", "the name", "one of its options", "one permission", "the addresses", "limits for one user",
    "the name of a connector", "settings for addresses, by match", "the wildcard characters",
})  # fmt: skip
"""Meanings that the path says, too."""
_NAMED: Final = "what their names say; each queue, divert and bridge has a name of its own"
_TUNING: Final = "it only tunes the internals of Artemis"
_NUMBER: Final = re.compile(r"-?[\d.]+")

_INTRODUCTION: Final = """\
# Configuration

One file in the format of Apache ActiveMQ Artemis, usually called `broker.xml`, configures a broker:

```xml
<configuration xmlns="urn:activemq">
   <core xmlns="urn:activemq:core">
      <name>my-broker</name>
      <security-enabled>false</security-enabled> <!-- nobody logs in; else users are needed: see security.md -->
      <acceptors>
         <acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor>
      </acceptors>
   </core>
</configuration>
```

`artemis-py check FILE` reports what is wrong with a file, what in it has no effect, and what a start with it would do
to messages in the journal. `artemis-py explain ADDRESS::QUEUE` shows which line decides each setting of an address or a
queue.

Each row has a setting, its default, in brackets what is allowed, and its meaning. Without brackets, `check` says what
is allowed: of numbers mostly 0 or more. Below each list is what the broker **ignores**, so that files of Artemis still
load. A start names each such element that is not at its default (one note names all that only tune Artemis). What
depends on something **refused** does not start.

## How a file is read

1. **Placeholders.** `${NAME:default}` becomes the environment variable `NAME`, else the default, else nothing (with a
   warning). The replacement may contain placeholders. Write `&` and `<` in it as `&amp;` and `&lt;`.
2. **Includes.** `<xi:include href="file.xml"/>` with `xmlns:xi="http://www.w3.org/2001/XInclude"` becomes the root
   element of that file, which must be in the namespace `urn:activemq:core`. A relative path is relative to the
   including file. `<!DOCTYPE`, pipes and devices are refused. A file may have 16 MiB, and so may all included files
   together.
3. **Schema.** The root element is `configuration`, in the namespace `urn:activemq`, `urn:activemq:core` or none. The
   first `core` element counts, and must follow the XSD in `schema/`. In `core`, `address-setting`, `address`, `queue`
   and `divert`, order does not matter, and each element may appear once.
4. **[Values](#values)**, and 5. **[properties](#properties)**.

All problems are reported together, each with its line: up to 200 errors, warnings and notes each. Passwords are masked.

### Values

- **Sizes** may have a unit: `K`, `M` or `G`, with or without `i` and `b`, in either case, all powers of 1024: `10kb`
  and `10 KiB` are 10240.
- **Times** are plain numbers in the unit of the default, mostly ms.
- **true and false** are these words. As in Artemis, `1` and an empty element mean *false*, with a warning.
- **Words** such as `PAGE` are upper case, without blanks around them.

### Which address-setting counts

All settings whose `match` applies to an address are merged. For each element, the most specific match that sets it
decides, in this order: the address itself; a match in literal markers; one without `#`; of two with `#`, the longer
text; one without `*`; the one whose first `*` comes later; the shorter text. `#` may only be the last character. A
narrower match cannot unset what a wider one sets, but it may set the default. Of two address-settings with the same
match, the first counts.

For security-settings, only the most specific match decides; of two with the same match the last counts.

### Ports that stay closed

While `security-enabled` is true and no users are known, nobody could log in. So an acceptor that other machines can
reach is not opened then, and neither is one with a `securityDomain` that has no `login.config`.

[Differences from Artemis](differences.md#configuration) in reading are listed there."""

_OUTRO: Final = """\
## Properties

`--properties PATH` overrides the file with properties, in Java's format or as JSON. A path is a file, or a folder with
files of both kinds (`folder/?filter=REGEX` for others). Separate several by commas, or repeat the option; later
properties win. Without the option, a `broker.properties` beside the file is used.

```properties
globalMaxSize=10M
addressSettings."orders.#".maxSizeBytes=1G
addressSettings."orders.#".addressFullMessagePolicy=BLOCK
addressConfigurations.orders.routingTypes=ANYCAST
addressConfigurations.orders.queueConfigs.orders.routingType=ANYCAST
addressConfigurations.orders.queueConfigs.orders.ringSize=100
addressConfigurations."orders.copy".routingTypes=MULTICAST
divertConfigurations.copy.address=orders
divertConfigurations.copy.forwardingAddress=orders.copy
connectorConfigurations.far.params.host=far.example
connectorConfigurations.far.params.port=61613
bridgeConfigurations.orders.queueName=orders
bridgeConfigurations.orders.staticConnectors=far
acceptorConfigurations.stomp.params.port=61614
securityRoles."orders.#".staff.send=true
```

Names are those of the elements in camel case, and all that Artemis up to 2.57 accepts (`persistIDCache`,
`journalRetentionDirectory` with `journalRetentionPeriod` in ms, `queueConfigurations`, …). Put a name with dots in
quotes. The value `-` removes what the key names. Placeholders work as in the file. Sizes and 64-bit numbers may have
units; `true`, `yes`, `y`, `on` and `1` are true. Unknown keys and wrong values are ignored with a warning."""

_CODES_NOTE: Final = """\
## Warnings and notes

Each has a code: `warning[no-effect]`. `run` and `check` hide a kind with `--silence CODE`, and refuse a file with any
other warning with `--strict`."""


def page() -> str:
    """Return the whole page."""
    sections = [
        _INTRODUCTION,
        _settings_section("Plain elements of `core`", settings_of(CoreSettings).values()),
        _settings_section("Elements of `address-setting`", settings_of(AddressSettings).values()),
        _settings_section("Attributes and elements of `queue`", settings_of(QueueConfig).values()),
        f"{_QUEUE_NOTE} {_followers()}.",
        _settings_section("Elements of `divert`", settings_of(DivertConfig).values()),
        _settings_section("Elements of `bridge`", settings_of(BridgeConfig).values()),
        _settings_section(
            "Parameters of connectors",
            [row for row in CONNECTOR_PARAMS.values() if row.treatment == HONOURED and not row.silent],
        ),
        _CONNECTOR_NOTE,
        _settings_section("Parameters of acceptors", [row for row in PARAMS if not row.silent]),
        _SILENT_NOTE,
        _parts_section(),
        _OUTRO,
        _CODES_NOTE,
        "\n".join(f"- `{code}`: {meaning}" for code, meaning in CODES.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _settings_section(title: str, rows: Iterable[Setting]) -> str:
    rows = list(rows)
    lines = "\n".join(_settings_line(row) for row in rows if row.treatment == HONOURED and not _follows(row))
    others = _by_reason((f"`{row.name}`", row.treatment, _reason(row)) for row in rows)
    return f"## {title}\n\n{lines}{others}"


def _follows(row: Setting) -> bool:
    """Is it what an address-setting of the same meaning says?"""
    followed = settings_of(AddressSettings).get(row.default_text)
    return followed is not None and followed.meaning == row.meaning


def _followers() -> str:
    """Those of a queue, with what they follow where its name is not theirs with ``default-``."""
    rows = [row for row in settings_of(QueueConfig).values() if row.treatment == HONOURED and _follows(row)]
    return ", ".join(
        f"`{row.name}`" + ("" if row.default_text == f"default-{row.name}" else f" (`{row.default_text}`)")
        for row in rows
    )


def _reason(row: Setting) -> str:
    """Why it is not honoured; one for all that nobody would notice."""
    return _TUNING if row.is_tuning and row.reason not in (JAVA, NO_COUNTERS, NO_EFFECT) else row.reason


def _settings_line(row: Setting) -> str:
    """One setting: its default, what is allowed, and what it does."""
    old = f" (old: {', '.join(f'`{alias}`' for alias in row.aliases)})" if row.aliases else ""
    allowed = _allowed(row)
    return f"- `{row.name}`{old} = {_default(row)}{f' [{allowed}]' if allowed else ''}: {row.meaning}"


def _default(row: Setting) -> str:
    """With its unit."""
    unit = row.unit if _NUMBER.fullmatch(row.default_text) else f"({row.unit})"
    return f"{row.default_text} {unit}" if row.unit else row.default_text or "none"


def _allowed(row: Setting) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.check is not None and row.check not in _PLAIN:
        return row.check.allowed
    return ""


def _by_reason(entries: Iterable[tuple[str, str, str]]) -> str:
    """What is not honoured: a line for each reason, with the names."""
    names: dict[str, dict[str, list[str]]] = {}
    for name, treatment, reason in entries:
        if treatment != HONOURED:
            names.setdefault(treatment, {}).setdefault(reason, []).append(name)
    lists = [
        f"**{treatment.capitalize()}**:\n\n"
        + "\n".join(f"- {', '.join(found)}: {reason}" for reason, found in its.items())
        for treatment, its in names.items()
    ]
    return "".join(f"\n\n{one}" for one in lists)


def _parts_section() -> str:
    parts = list(PARTS.values())
    paths: dict[str, list[str]] = {}
    for part in parts:
        if part.treatment == HONOURED:
            meaning = _NAMED if part.meaning in _OBVIOUS else part.meaning
            paths.setdefault(meaning, []).append(f"`{part.path}`")
    obvious = paths.pop(_NAMED)
    lines = "\n".join(f"- {', '.join(names)}: {meaning}" for meaning, names in {**paths, _NAMED: obvious}.items())
    others = _by_reason((f"`{part.path}`", part.treatment, part.reason) for part in parts)
    return f"## Elements with a structure\n\nBy their path below `core`.\n\n{lines}{others}"
