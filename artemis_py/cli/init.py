"""``artemis-py init [FILE]``: writes a commented broker.xml to start with."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from artemis_py.atomic_files import replace_file
from artemis_py.cli.configuration import DEFAULT_FILE
from artemis_py.errors import AdviceError, ArtemisError
from artemis_py.shown import say

HELP: Final = "write a commented broker.xml to start with"

TEMPLATE: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<!--
  A broker to start with.

    artemis-py check {file}             everything that is wrong here, or has no effect
    artemis-py run {file}               the broker, until Ctrl-C
    artemis-py explain orders           where each setting of a queue comes from
    artemis-py send orders hello        a message
    artemis-py receive orders           and here it is again
    artemis-py top                      the queues, while they work

  The format is that of Apache ActiveMQ Artemis. ${{NAME:default}} is an environment variable, or the default.
-->
<configuration xmlns="urn:activemq">
   <core xmlns="urn:activemq:core">

      <!-- Its name in metrics and logs. -->
      <name>${{BROKER_NAME:{name}}}</name>

      <!--
        "true": messages sent with persistent:true outlive any restart, and any crash. They are in these folders, which
        are below the folder in which the broker is started. "false": nothing is left behind.
      -->
      <persistence-enabled>true</persistence-enabled>
      <journal-directory>data/journal</journal-directory>
      <bindings-directory>data/bindings</bindings-directory>
      <paging-directory>data/paging</paging-directory>
      <large-messages-directory>data/large-messages</large-messages-directory>

      <!--
        "false": whoever reaches a port may do everything. The ports below are reached from this machine alone. Before
        you open them to others, set it to "true" and add users:  artemis-py user add NAME
      -->
      <security-enabled>false</security-enabled>

      <acceptors>
         <!--
           STOMP, for clients of any language. /queue/orders and /topic/prices are the address orders, for one consumer
           of each message, and prices, for all of them.
         -->
         <acceptor name="stomp">tcp://127.0.0.1:${{STOMP_PORT:61613}}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/</acceptor>

         <!--
           HTTP: a console for a browser, http://localhost:8161; metrics at /metrics, health at /health/ready, and what
           the commands of artemis-py ask.
         -->
         <acceptor name="http">tcp://127.0.0.1:${{HTTP_PORT:8161}}?protocols=HTTP</acceptor>
      </acceptors>

      <!-- Settings by address: * is one word between dots, # any number of words. The most specific match counts. -->
      <address-settings>
         <address-setting match="#">
            <!-- A message that was refused so often goes to this address, with what it was and where it came from. -->
            <dead-letter-address>dead-letters</dead-letter-address>
            <max-delivery-attempts>5</max-delivery-attempts>

            <!-- The wait before it is delivered again: 1 s, then 2 s, 4 s, … -->
            <redelivery-delay>1000</redelivery-delay>
            <redelivery-delay-multiplier>2.0</redelivery-delay-multiplier>
            <max-redelivery-delay>60000</max-redelivery-delay>

            <!-- An address with more than so much in memory writes further messages to files. -->
            <max-size-bytes>100MiB</max-size-bytes>
            <address-full-policy>PAGE</address-full-policy>

            <!-- What clients name is made when they first use it. "false": only what is declared below. -->
            <auto-create-addresses>true</auto-create-addresses>
            <auto-create-queues>true</auto-create-queues>
            <default-address-routing-type>ANYCAST</default-address-routing-type>
            <default-queue-routing-type>ANYCAST</default-queue-routing-type>
         </address-setting>
      </address-settings>

      <addresses>
         <!-- anycast: each message goes to one consumer. -->
         <address name="orders">
            <anycast><queue name="orders"/></anycast>
         </address>

         <!-- multicast: each subscriber has a queue of its own, and gets every message. -->
         <address name="prices">
            <multicast/>
         </address>

         <address name="dead-letters">
            <anycast><queue name="dead-letters"/></anycast>
         </address>
      </addresses>
   </core>
</configuration>
"""


class ThereAlreadyError(AdviceError):
    """A file is there, and nobody has said that it may be replaced."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``init [FILE] [--force]``."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", default=Path(DEFAULT_FILE), help=f"(default: {DEFAULT_FILE})"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(args: argparse.Namespace) -> int:
    """Writes the file. Raises ThereAlreadyError, and ArtemisError if it cannot be written."""
    write(args.file, replaces=args.force)
    say(f"wrote {args.file}; start it:  artemis-py run{'' if args.file == Path(DEFAULT_FILE) else f' {args.file}'}")
    return 0


def write(file: Path, *, replaces: bool = False) -> None:
    """Write a broker.xml. Raises ThereAlreadyError, and ArtemisError if it cannot be written."""
    text = TEMPLATE.format(file=_in_comment(file), name="artemis_py")
    if not replaces and os.path.lexists(file):
        raise ThereAlreadyError(f"{file} is there already, and stays as it is", "--force replaces it")
    try:
        replace_file(file, text.encode(), mode=None)
    except OSError as error:
        raise ArtemisError(f"{file} cannot be written: {error.strerror}") from None


def _in_comment(file: Path) -> str:
    """The name of the file, as a comment of XML may have it."""
    name = file.name
    return name if name.isascii() and name.isprintable() and "--" not in name else DEFAULT_FILE
