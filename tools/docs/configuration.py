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
from artemis_py.config.tables.fields import HONOURED, Setting, settings_of
from artemis_py.config.tables.structured_elements import PARTS

_QUEUE_NOTE: Final = (
    "`durable`, `filter` and `user` are elements inside the queue; the others are attributes. A default that names "
    "another setting means that address-setting of the queue's address; without a meaning here it is the same."
)
_CONNECTOR_NOTE: Final = (
    "Stores are of the same kinds as those of acceptors. Other parameters of Artemis' connectors are accepted without "
    "effect."
)
_SHORT: Final = {
    "-1 or a number greater than 0": "-1, > 0",
    "a number greater than 0": "> 0",
    "-1, 0 or more": "-1, ≥ 0",
    "0 or more": "≥ 0",
    "a non-blank text": "not blank",
}
"""What checks allow, as the page has it."""
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
to the messages that the journal has. `artemis-py explain ADDRESS::QUEUE` shows where each setting of an address or a
queue comes from.

Each list has what the broker does: a setting = its default [what is allowed, if not any text or number]: what it means.
Below it stands what the broker **ignores**, by reason, so that files of Artemis still load: it names each such element
once at the start if the file sets it to something other than its default (one note names all that only tune the
internals of Artemis). What depends on something **refused** does not start.

## How a file is read

1. **Placeholders.** `${NAME:default}` is replaced by the environment variable `NAME`, else by the default, else by
   nothing (with a warning). The replacement may contain placeholders again, and is inserted as it is: write `&` and `<`
   in it as `&amp;` and `&lt;`.
2. **Includes.** `<xi:include href="file.xml"/>` with `xmlns:xi="http://www.w3.org/2001/XInclude"` is replaced by the
   root element of that file, which must be in the namespace `urn:activemq:core`. A relative path is relative to the
   including file (in Artemis to the working directory; a note says if a file exists there too). `<!DOCTYPE` is refused,
   and so are pipes and devices. A file may have up to 16 MiB, and so may all included files together.
3. **Schema.** The root element is `configuration`, in the namespace `urn:activemq`, `urn:activemq:core` or none. Of
   several `core` elements the first counts. It must follow the XSD in `schema/`. Order does not matter in `core`,
   `address-setting`, `address`, `queue` and `divert`; each element may appear there once.
4. **[Values](#values)**, and 5. **[properties](#properties)**.

All problems are reported together, each with its line: up to 200 errors, 200 warnings and 200 notes. Passwords are
masked.

### Values

- **Sizes** may have a unit: `K`, `M` or `G`, with or without `i` and `b`, in either case, all powers of 1024: `10kb`
  and `10 KiB` are 10240.
- **Times** are plain numbers in the unit of the default, mostly ms.
- **true and false** are written like this. As in Artemis, `1` and an empty element mean *false*, with a warning.
- **Words** such as `PAGE` are upper case, without blanks around them.

### Which address-setting counts

All settings whose `match` applies to an address are merged: for each element, the most specific match that sets it
decides. The order is: the address itself; a match in literal markers; matches without `#` before matches with one; of
two with `#`, the longer text; without `*` before with `*`; the one whose first `*` comes later; the shorter text. `#`
may only be the last character. A narrower match cannot unset what a wider one sets, but it may set the default
explicitly. Of two address-settings with the same match the first counts.

For security-settings, only the most specific match decides; of two with the same match the last counts.

### Differences from Artemis in reading

- `default-ring-size` also applies to declared queues, as Artemis' manual says.
- `id-cache-size` inside an address-setting never becomes that of the broker.
- An unknown acceptor parameter is a warning, a wrong number an error. `protocols=stomp` means STOMP, not all protocols.
- A size past 64 bits is an error.
- An acceptor that other machines can reach is not opened while `security-enabled` is true and no users are known, nor
  one with a `securityDomain` without a `login.config`: nobody could log in. An acceptor with `sslEnabled=true` is not
  opened, because it would use plain text."""

_OUTRO: Final = """\
## Properties

`--properties PATH` overrides the file with properties, in Java's format or as JSON. A path may be a file, a folder (all
files of both kinds in it, by name; `folder/?filter=REGEX` for others), or several of them separated by commas. The
option may be repeated; later properties win. Without the option, a `broker.properties` next to the configuration is
used.

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
units, and `true`, `yes`, `y`, `on` and `1` are true. Unknown keys and wrong values are ignored with a warning (Artemis
uses 0 for a wrong number)."""

_CODES_NOTE: Final = """\
## Warnings and notes

Each has a code after its severity: `warning[no-effect]`. `--silence CODE` makes `run` and `check` hide a kind;
`--strict` makes them refuse a file with any other warning. Errors have no code."""


def page() -> str:
    """Return the whole page."""
    sections = [
        _INTRODUCTION,
        _settings_section("Plain elements of `core`", settings_of(CoreSettings).values()),
        _settings_section("Elements of `address-setting`", settings_of(AddressSettings).values()),
        _settings_section("Attributes and elements of `queue`", settings_of(QueueConfig).values()),
        _QUEUE_NOTE,
        _settings_section("Elements of `divert`", settings_of(DivertConfig).values()),
        _settings_section("Elements of `bridge`", settings_of(BridgeConfig).values()),
        _settings_section(
            "Parameters of connectors",
            [row for row in CONNECTOR_PARAMS.values() if row.treatment == HONOURED and not row.silent],
        ),
        _CONNECTOR_NOTE,
        _settings_section("Parameters of acceptors", [row for row in PARAMS if not row.silent]),
        _silent_parameters(),
        _parts_section(),
        _OUTRO,
        _CODES_NOTE,
        "\n".join(f"- `{code}`: {meaning}" for code, meaning in CODES.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _silent_parameters() -> str:
    names = ", ".join(f"`{row.name}`" for row in PARAMS if row.silent)
    return (
        f"`{HANDSHAKE_SECONDS}` (in seconds) is read as `handshakeTimeout`. Accepted without effect, because they are "
        f"about TLS, Java or other protocols: {names}."
    )


def _settings_section(title: str, rows: Iterable[Setting]) -> str:
    rows = list(rows)
    lines = "\n".join(_settings_line(row) for row in rows if row.treatment == HONOURED)
    others = _by_reason((f"`{row.name}`", row.treatment, row.reason) for row in rows)
    return f"## {title}\n\n{lines}{others}"


def _settings_line(row: Setting) -> str:
    """One setting: its default, what is allowed, and what it does."""
    old = f" (old: {', '.join(f'`{alias}`' for alias in row.aliases)})" if row.aliases else ""
    followed = settings_of(AddressSettings).get(row.default_text)
    if followed is not None and followed.meaning == row.meaning:
        return f"- `{row.name}`{old} = `{row.default_text}`"
    allowed = _allowed(row)
    return f"- `{row.name}`{old} = {_default(row)}{f' [{allowed}]' if allowed else ''}: {row.meaning}"


def _default(row: Setting) -> str:
    """With its unit."""
    unit = row.unit if _NUMBER.fullmatch(row.default_text) else f"({row.unit})"
    return f"{row.default_text} {unit}" if row.unit else row.default_text


def _allowed(row: Setting) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.check is not None:
        return _SHORT.get(row.check.allowed, row.check.allowed)
    return "size" if row.kind == "bytes" else ""


def _by_reason(entries: Iterable[tuple[str, str, str]]) -> str:
    """What is not honoured: a line for each reason, with the names."""
    names: dict[str, list[str]] = {}
    for name, treatment, reason in entries:
        if treatment != HONOURED:
            names.setdefault(f"{treatment}: {reason}", []).append(name)
    lines = [f"- {reason[0].upper()}{reason[1:]}: {', '.join(found)}." for reason, found in names.items()]
    return "\n\n" + "\n".join(lines) if lines else ""


def _parts_section() -> str:
    parts = list(PARTS.values())
    paths: dict[str, list[str]] = {}
    for part in parts:
        if part.treatment == HONOURED:
            paths.setdefault(part.meaning, []).append(f"`{part.path}`")
    lines = "\n".join(f"- {', '.join(names)}: {meaning}" for meaning, names in paths.items())
    others = _by_reason((f"`{part.path}`", part.treatment, part.reason) for part in parts)
    return f"## Elements with a structure\n\nBy their path below `core`.\n\n{lines}{others}"
