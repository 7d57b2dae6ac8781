"""A broker with security on and clients who have logged in, without passwords: a test says who somebody is."""

from __future__ import annotations

from dataclasses import dataclass

from artemis_py.security.identity import Identity
from artemis_py.security.rights import Authorizer
from tests.kit.frames import ServerFrame, escaped_frame
from tests.kit.in_process import Client, InProcessBroker, configuration


def setting(match: str, **roles: str) -> str:
    """A security-setting of broker.xml; ``send="a,b"`` gives the permission to two roles."""
    rows = "".join(f'<permission type="{name}" roles="{given}"/>' for name, given in roles.items())
    return f'<security-setting match="{match}">{rows}</security-setting>'


class SecuredBroker(InProcessBroker):
    """The core of broker.xml is given as pieces: security settings, and whatever else."""

    def __init__(self, *security: str, core: str = "") -> None:
        self.config = configuration(f"<security-settings>{''.join(security)}</security-settings>{core}")
        self.told: list[tuple[str, str]] = []
        self.authorizer = Authorizer(self.config, lambda line, kind, *_: self.told.append((line, kind)))
        super().__init__(self.config)

    @property
    def names(self) -> tuple[set[str], set[str]]:
        """The addresses and the queues that exist."""
        return set(self.broker.addresses), set(self.broker.queues)

    def login(self, user: str, *roles: str, version: str = "1.1", name: str = "") -> Person:
        """Somebody who has logged in on a connection of their own."""
        client = self.client(name or user)
        client.send(f"CONNECT\naccept-version:{version}\nhost:x\nlogin:{user}\nclient-id:{user}-id\n\n\0".encode())
        assert client.collect().pop().command == "CONNECTED"
        client.connection.session.state.rights = self.authorizer.rights_of(Identity(user, frozenset(roles)))
        return Person(client)


@dataclass(frozen=True)
class Person:
    """One client of a ``SecuredBroker``."""

    client: Client

    def frame(self, command: str, body: str = "", **headers: str) -> str | None:
        """Send a frame with a receipt; returns None for a RECEIPT, else the text of the ERROR. Underscores in names
        stand for hyphens.
        """
        self.client.collect().clear()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.client.send(escaped_frame(command, {**given, "receipt": "r"}, body.encode(), "1.2"))
        answers = [frame for frame in self.client.collect() if frame.command in ("RECEIPT", "ERROR")]
        assert len(answers) == 1, answers
        return None if answers[0].command == "RECEIPT" else answers[0].headers["message"]

    def send(self, destination: str, body: str = "x", **headers: str) -> str | None:
        """SEND."""
        return self.frame("SEND", body, destination=destination, **headers)

    def subscribe(self, destination: str, id: str = "1", **headers: str) -> str | None:
        """SUBSCRIBE."""
        return self.frame("SUBSCRIBE", destination=destination, id=id, **headers)

    def messages(self) -> list[ServerFrame]:
        """The messages that came since the last frame."""
        return [frame for frame in self.client.collect() if frame.command == "MESSAGE"]


def denied(user: str, permission: str, address: str, queue: str | None = None) -> str:
    """The text of a denial, as Artemis words it."""
    if queue is None:
        return f"AMQ229032: User: {user} does not have permission='{permission}' on address {address}"
    return f"AMQ229213: User: {user} does not have permission='{permission}' for queue {queue} on address {address}"
