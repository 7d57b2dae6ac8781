"""A broker with a queue ``q`` on an anycast address ``q``, and its clients by name: frames in, frames out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.kit.in_process import InProcessBroker, SteppedBroker, configuration
from tests.kit.named_clients import NamedClients

FLAT: Final = "consumer-window-size:-1"
"""A SUBSCRIBE header: as many messages as there are."""
ONE_AT_A_TIME: Final = "consumer-window-size:0"
"""A SUBSCRIBE header: never more than one unacknowledged message."""
FREELY: Final = (FLAT, "max-backlog:10")
"""SUBSCRIBE headers: many messages, also where a queue gives few at a time."""


def declared(attributes: str = "", settings: str = "", more: str = "") -> str:
    """XML below ``core``: the queue with these attributes, address-settings for all, and further addresses."""
    return f"""
    <addresses>
      <address name="q"><anycast><queue name="q" {attributes}/></anycast></address>
      {more}
    </addresses>
    <address-settings><address-setting match="#">{settings}</address-setting></address-settings>
    """


class Bench(NamedClients):
    """The broker and its clients, by name. With ``cut`` every byte arrives alone; ``core`` is another configuration,
    as XML below the core element, and ``acceptor`` are more parameters of the acceptor. ``world`` is another broker.
    """

    address = "/queue/q"
    """Where messages go unless a test says where."""
    always: tuple[str, ...] = ()
    """Headers of each message."""

    def __init__(
        self,
        attributes: str = "",
        *,
        settings: str = "",
        more: str = "",
        cut: bool = False,
        core: str | None = None,
        acceptor: str = "",
        world: SteppedBroker | None = None,
    ) -> None:
        if world is None:
            xml = declared(attributes, settings, more) if core is None else core
            world = InProcessBroker(configuration(xml, acceptor))
        super().__init__(world, cut=cut)

    def send(self, body: str, *headers: str, to: str = "", by: str = "producer") -> None:
        """A client sends a message."""
        self.write(by, "SEND", f"destination:{to or self.address}", *headers, *self.always, body=body)

    def send_all(self, bodies: Iterable[str], *headers: str, to: str = "", by: str = "producer") -> None:
        """A message for each body, which stands for {} in the headers."""
        for body in bodies:
            self.send(body, *(header.format(body) for header in headers), to=to, by=by)

    def read(self, name: str = "", count_max: int = 1000, *, of: str = "q") -> list[str]:
        """What a queue gives one by one, at most so much, each acknowledged, but the last of ``count_max`` is not. A
        client without a name acknowledges that, too, and has gone afterwards: no attempt is counted.
        """
        reader = name or f"reader {len(self.clients)}"
        self.subscribe(reader, ONE_AT_A_TIME, to=f"{self.queue(of).address.name}::{of}")
        bodies = self.drain(reader, at_once_max=1000, count_max=count_max + (not name))[:count_max]
        if not name:
            self.leave(reader)
            self.lose(reader)
        return bodies
