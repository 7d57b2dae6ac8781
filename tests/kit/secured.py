"""A broker with a journal where users log in: ann administers, bob looks, and eve may send and consume."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kit.process import HTTP, STOMP, BrokerProcess, started

USERS: Final[Mapping[str, str]] = {"ann": "ann's secret", "bob": "bob's secret", "eve": "eve's secret"}
_ROLES: Final = "editors=ann\nviewers=bob\nworkers=ann,bob,eve\n"
_CONFIGURATION: Final = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>secured</name>
    <persistence-enabled>true</persistence-enabled>
    <journal-directory>{folder}/journal</journal-directory>
    <bindings-directory>{folder}/bindings</bindings-directory>
    <paging-directory>{folder}/paging</paging-directory>
    <large-messages-directory>{folder}/large</large-messages-directory>
    <journal-retention-directory unit="DAYS" period="1">{folder}/kept</journal-retention-directory>
    <journal-file-size>100K</journal-file-size>
    {authentication}
    <security-settings>
      <security-setting match="#">
        <permission type="send" roles="workers"/>
        <permission type="consume" roles="workers"/>
        <permission type="browse" roles="workers"/>
        <permission type="createAddress" roles="workers"/>
        <permission type="createDurableQueue" roles="workers"/>
        <permission type="createNonDurableQueue" roles="workers"/>
      </security-setting>
      <security-setting match="locked">
        <permission type="send" roles="workers"/>
        <permission type="consume" roles="editors"/>
      </security-setting>
      <security-setting match="activemq.management">
        <permission type="manage" roles="editors,viewers"/>
      </security-setting>
      <security-setting match="mops.#">
        <permission type="view" roles="viewers,editors"/>
        <permission type="edit" roles="editors"/>
      </security-setting>
      {permissions}
    </security-settings>
    <acceptors>
{acceptors}
    </acceptors>
    <addresses>
      <address name="jobs"><anycast><queue name="jobs" max-per-subscription-backlog="-1"/></anycast></address>
      <address name="locked"><anycast><queue name="locked" max-per-subscription-backlog="-1"/></anycast></address>
    </addresses>
    <address-settings>
      <address-setting match="#">
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
    </address-settings>
  </core>
</configuration>
"""


@contextmanager
def secured_broker(
    folder: Path, authentication: str = "", permissions: str = "", **acceptors: str
) -> Iterator[BrokerProcess]:
    """The broker, from its readiness to its end; ``acceptors`` are further ones by name. ``authentication`` is XML that
    names other users, ``permissions`` more security-settings.
    """
    (folder / "artemis-users.properties").write_text("".join(f"{user}={text}\n" for user, text in USERS.items()))
    (folder / "artemis-roles.properties").write_text(_ROLES)
    uris = {"stomp": STOMP, "http": HTTP, **acceptors}
    lines = "\n".join(f'      <acceptor name="{name}">{uri}</acceptor>' for name, uri in uris.items())
    file = folder / "broker.xml"
    text = _CONFIGURATION.format(folder=folder, acceptors=lines, authentication=authentication, permissions=permissions)
    file.write_text(text, "utf-8")
    with started(file) as broker:
        yield broker
        assert broker.stop() == broker.code_expected, broker.said


def basic(user: str, password: str | None = None) -> str:
    """The header Authorization of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password or USERS[user]}".encode()).decode()
