"""docs/configuration.md, from the tables of settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from artemis_py.config.problems import CODES
from artemis_py.config.tables.acceptor import HANDSHAKE_SECONDS, PARAMS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.entities import DivertConfig, QueueConfig
from artemis_py.config.tables.fields import HONOURED, Setting, settings_of
from artemis_py.config.tables.structured_elements import PARTS
from tools.docs.table import table

_HEADER: Final = ("default", "unit", "allowed", "effect", "meaning")
_QUEUE_NOTE: Final = (
    "`durable`, `filter` and `user` are elements inside the queue; the others are attributes. A default that names "
    "another setting means that address-setting of the queue's address."
)
_KINDS: Final = {"boolean": "true, false", "int": "whole number", "long": "whole number", "double": "number"}

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

`artemis-py check FILE` reports everything that is wrong with a file, and everything in it that has no effect, and
what a start with it would do to the messages that the journal has;
`artemis-py explain ADDRESS::QUEUE` shows where each setting of an address or a queue comes from. The tables below come
from the same rows that the broker uses. *Effect* is one of

- **honoured**: the broker does what the element says;
- **ignored**, with the reason: files of Artemis still load, and the broker names each such element once at the start if
  the file sets it to something other than its default (one note names all elements that only tune the internals of
  Artemis);
- **refused**, with the reason: what depends on it does not start.

## How a file is read

1. **Placeholders.** `${NAME:default}` in the text is replaced by the environment variable `NAME`, else by the default,
   else by nothing (with a warning). The replacement may contain placeholders again; one that refers to itself is an
   error. It is inserted as it is: write `&` and `<` in it as `&amp;` and `&lt;`.
2. **Includes.** `<xi:include href="file.xml"/>` with `xmlns:xi="http://www.w3.org/2001/XInclude"` is replaced by the
   root element of that file, which must be in the namespace `urn:activemq:core`. A relative path is relative to the
   including file. (In Artemis it is relative to the working directory; a note says if a file exists there too.) A
   document type (`<!DOCTYPE`) is refused. Only regular files are read, not pipes or devices. A file may have up to 16
   MiB, and so may all included files together.
3. **Schema.** The root element is `configuration`, in the namespace `urn:activemq`, in `urn:activemq:core` or in none.
   Of several `core` elements inside it the first counts; the others get a warning. `core` must follow the XSD in
   `schema/`. Order does not matter in `core`, `address-setting`, `address`, `queue` and `divert`; each element may
   appear there once.
4. **Values**, see below.
5. **Properties**, see the end.

All problems are reported together, each with its line: up to 200 errors, 200 warnings and 200 notes. `check` also shows
the line itself, and ends with the addresses on which the broker would listen. Passwords are masked, and unprintable
characters are escaped.

### Values

- **Sizes** may have a unit: `K`, `M` or `G`, with or without `i` and `b`, in upper or lower case. All are powers of
  1024: `10K`, `10kb` and `10 KiB` are 10240. Only the elements with *size* below accept a unit.
- **Times** are plain numbers in the unit of the table, mostly ms.
- **true and false** are written like this. As in Artemis, `1` and an empty element pass the schema and mean *false*;
  both get a warning.
- **Words** such as `PAGE` are upper case, without blanks around them.

### Which address-setting counts

All settings whose `match` applies to an address are merged. For each element, the most specific match that sets it
decides; an element that no match sets has its default. The order is: the address itself; a match in literal markers;
matches without `#` before matches with one; of two with `#`, the longer text; without `*` before with `*`; the one
whose first `*` comes later; the shorter text. `#` may only be the last character. A narrower match cannot unset what a
wider one sets, but it may set the default explicitly. Of two address-settings with the same match the first counts.

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
acceptorConfigurations.stomp.params.port=61614
securityRoles."orders.#".staff.send=true
```

Names are those of the elements in camel case, and every name that Artemis up to 2.57 itself accepts
(`connectionTTLOverride`, `persistIDCache`,
`journalRetentionDirectory` with `journalRetentionPeriod` in ms, `queueConfigurations`, …). Put a name
with dots in quotes. The value `-` removes what the key names. Placeholders work as in the file. Sizes and 64-bit
numbers may have units, and `true`, `yes`, `y`, `on` and `1` are true. Unknown keys and wrong values are ignored with a
warning (Artemis uses 0 for a wrong number); they never stop the broker."""

_CODES_NOTE: Final = """\
## Warnings and notes

Each has a code after its severity: `warning[no-effect]`. `--silence CODE` makes `run` and `check` hide a kind;
`--strict` makes them refuse a file with any other warning. Errors have no code."""


def page() -> str:
    """Return the whole page."""
    sections = [
        _INTRODUCTION,
        _settings_section("Plain elements of `core`", "element", settings_of(CoreSettings).values()),
        _settings_section("Elements of `address-setting`", "element", settings_of(AddressSettings).values()),
        _settings_section("Attributes and elements of `queue`", "attribute", settings_of(QueueConfig).values()),
        _QUEUE_NOTE,
        _settings_section("Elements of `divert`", "element", settings_of(DivertConfig).values()),
        _settings_section("Parameters of acceptors", "parameter", [row for row in PARAMS if not row.silent]),
        _silent_parameters(),
        _parts_section(),
        _OUTRO,
        _CODES_NOTE,
        table(("code", "means"), [(f"`{code}`", meaning) for code, meaning in CODES.items()]),
    ]
    return "\n\n".join(sections) + "\n"


def _silent_parameters() -> str:
    names = ", ".join(f"`{row.name}`" for row in PARAMS if row.silent)
    return (
        f"`{HANDSHAKE_SECONDS}` (in seconds) is read as `handshakeTimeout`. Accepted without effect, because they are "
        f"about TLS, Java or other protocols: {names}."
    )


def _settings_section(title: str, first: str, rows: Iterable[Setting]) -> str:
    cells = [_settings_row(row) for row in rows]
    return f"## {title}\n\n{table((first, *_HEADER), cells)}"


def _settings_row(row: Setting) -> tuple[str, ...]:
    names = f"`{row.name}`"
    if row.aliases:
        names += f" (old: {', '.join(f'`{alias}`' for alias in row.aliases)})"
    return names, row.default_text, row.unit, _allowed(row), _effect(row.treatment, row.reason), row.meaning


def _allowed(row: Setting) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.check is not None:
        return row.check.allowed
    if row.kind == "bytes":
        return "size, with or without a unit"
    return _KINDS.get(row.kind, "text")


def _effect(treatment: str, reason: str) -> str:
    return treatment if treatment == HONOURED else f"{treatment}: {reason}"


def _parts_section() -> str:
    cells = [
        (
            f"`{part.path}`" + (" with its content" if part.whole else ""),
            _effect(part.treatment, part.reason),
            part.meaning,
        )
        for part in PARTS.values()
    ]
    return f"## Elements with a structure\n\n{table(('path below `core`', 'effect', 'meaning'), cells)}"
