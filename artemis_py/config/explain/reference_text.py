"""The prose of docs/configuration.md around its tables."""

from __future__ import annotations

from typing import Final

INTRODUCTION: Final = """\
# Configuration

A broker is configured by one file in the format of Apache ActiveMQ Artemis, usually called `broker.xml`:

```xml
<configuration xmlns="urn:activemq">
   <core xmlns="urn:activemq:core">
      <name>my-broker</name>
      <acceptors>
         <acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor>
      </acceptors>
   </core>
</configuration>
```

`artemis-py check FILE` reports everything that is wrong with a file, and everything in it that has no effect;
`artemis-py explain ADDRESS::QUEUE` shows where each setting of an address or a queue comes from. The tables below are
made from the same rows that the broker works with. *Effect* is one of

- **honoured**: the broker does what the element says;
- **ignored**, with the reason: files of Artemis load all the same, and each such element that a file sets to something
  other than its default is named once when the broker starts (those that only tune the inside of Artemis together, in
  one note);
- **refused**, with the reason: what depends on it does not start.

## How a file is read

1. **Placeholders.** `${NAME:default}` in the text is replaced by the environment variable `NAME`, else by the default,
   else by nothing (with a warning). The replacement may hold placeholders again; one that leads back to itself is an
   error. It is pasted as it is: `&` and `<` must be written `&amp;` and `&lt;` in it.
2. **Includes.** `<xi:include href="file.xml"/>` with `xmlns:xi="http://www.w3.org/2001/XInclude"` is replaced by the
   outermost element of that file, which must be in the namespace `urn:activemq:core`. A relative path starts at the
   file that includes. (In Artemis it starts at the working directory; a note says when a file is there too.) A document
   type (`<!DOCTYPE`) is refused. Only regular files are read, no pipes and devices; one file may have 16 MiB, and all
   included files together as many.
3. **Schema.** The outermost element is `configuration`, in the namespace `urn:activemq`, in `urn:activemq:core` or in
   none; of several `core` inside it the first counts, and the others are warned of. `core` must fit the XSD in
   `schema/`. Order does not matter in `core`, `address-setting`, `address`, `queue` and `divert`; each element may
   stand there once.
4. **Values**, see below.
5. **Properties**, see the end.

Every problem is told at once, each with its line; of errors, warnings and notes 200 each. `check` shows the line, too,
and ends with where the broker would listen. Values of passwords are masked, and what does not print is escaped.

### Values

- **Sizes** may have a unit: `K`, `M` or `G`, with or without `i` and `b`, in any case. All are powers of 1024: `10K`,
  `10kb` and `10 KiB` are 10240. Only the elements with *size* below take one.
- **Times** are plain numbers in the unit of the table, mostly ms.
- **true and false** are written so. As in Artemis, `1` passes the schema and counts as *false*, and so does an empty
  element; both get a warning.
- **Words** such as `PAGE` are upper case, without blanks around them.

### Which address-setting counts

All settings whose `match` applies to an address count together. For each element the most specific match that sets it
decides; what no match sets has its default. The order is: the address itself; a match in literal markers; matches
without `#` before matches with one; of two with `#` the longer text; without `*` before with `*`; the one whose first
`*` comes later; the shorter text. `#` may only be the last character. There is no way to take back what a wider match
sets, but the default may be written explicitly. Of two address-settings with the same match the first counts.

For security-settings the most specific match alone decides; of two with the same match the last counts.

### Differences from Artemis in reading

- `default-ring-size` holds for declared queues too, as Artemis' manual says.
- `id-cache-size` inside an address-setting never becomes that of the broker.
- An acceptor parameter that is unknown is a warning, a wrong number an error; `protocols=stomp` means STOMP, not all
  protocols.
- A size past 64 bits is an error.
- An acceptor that other machines can reach is not opened while `security-enabled` is true, because this version checks
  no passwords; nor is one with `sslEnabled=true`, because it would speak plain text."""

OUTRO: Final = """\
## Properties

`--properties PATH` lays properties over the file, in Java's format or as JSON. A path may be a file, a folder (all
files of both kinds in it, by name; `folder/?filter=REGEX` for others), or several of them with commas between, and the
option may stand more than once; what comes later wins. Without the option, a `broker.properties` beside the
configuration is used.

```properties
globalMaxSize=10M
addressSettings."orders.#".maxSizeBytes=1G
addressSettings."orders.#".addressFullMessagePolicy=BLOCK
addressConfigurations.orders.routingTypes=ANYCAST
addressConfigurations.orders.queueConfigs.orders.routingType=ANYCAST
addressConfigurations.orders.queueConfigs.orders.ringSize=100
divertConfigurations.copy.address=orders
divertConfigurations.copy.forwardingAddress=orders.copy
acceptorConfigurations.stomp.params.port=61614
securityRoles."orders.#".staff.send=true
```

Names are those of the elements in camel case, and every name that Artemis 2.44 itself takes (`connectionTTLOverride`,
`persistIDCache`, `journalRetentionDirectory` with `journalRetentionPeriod` in ms, `queueConfigurations`, …). A name
with dots stands in quotes. The value `-` takes away what the key leads to. Placeholders work as in the file; sizes and
64-bit numbers take units, and `true`, `yes`, `y`, `on` and `1` are true. Keys that mean nothing and values that are
none are left out with a warning (Artemis takes 0 for a number that is none), and never stop the broker."""

CODES_NOTE: Final = """\
## Warnings and notes

Each has a code, which stands behind its severity: `warning[no-effect]`. `run` and `check` leave out those that
`--silence CODE` names, and refuse a file with any other warning under `--strict`. Errors have no code."""
