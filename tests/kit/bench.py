"""A broker with a queue ``q`` on an anycast address ``q``, and clients that send to it and read from it: frames in,
frames out.
"""

from __future__ import annotations

from tests.kit.in_process import InProcessBroker, configuration
from tests.kit.named_clients import NamedClients

FLAT = "consumer-window-size:-1"
"""A SUBSCRIBE header: as many messages as there are."""
ONE_AT_A_TIME = "consumer-window-size:0"
"""A SUBSCRIBE header: never more than one unacknowledged message."""


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
    as XML below the core element, and ``acceptor`` are more parameters of the acceptor.
    """

    def __init__(
        self,
        attributes: str = "",
        *,
        settings: str = "",
        more: str = "",
        cut: bool = False,
        core: str | None = None,
        acceptor: str = "",
    ) -> None:
        self.world = InProcessBroker(
            configuration(declared(attributes, settings, more) if core is None else core, acceptor)
        )
        super().__init__(self.world.broker, self.world.client, self.world.settle, cut, self.world.clients)

    def send(self, body: str, *headers: str, to: str = "q") -> None:
        """A producer sends a message."""
        self.write("producer", "SEND", f"destination:/queue/{to}", *headers, body=body)

    def send_all(self, bodies: str, *headers: str) -> None:
        """A message for each character, which stands for {} in the headers."""
        for body in bodies:
            self.send(body, *(header.format(body) for header in headers))

    def join(self, name: str, *headers: str, ack: str = "client-individual") -> None:
        """A client subscribes that may have many messages."""
        self.subscribe(name, FLAT, "max-backlog:10", *headers, ack=ack)

    def after(self, duration_ms: int) -> str:
        """A header value: the time so long from now."""
        return str(self.world.now_ms + duration_ms)
