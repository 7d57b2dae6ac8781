"""A connection of a bridge in a broker on a fake loop; the test is the other broker."""

from __future__ import annotations

from artemis_py.config.settings import BridgeConfig
from artemis_py.record_log import MemoryLog
from artemis_py.server.bridges.connection import BridgeConnection, End, Login
from artemis_py.stomp.client import FrameReader, ServerFrame, frame
from tests.kit.fake_loop import FakeTransport
from tests.kit.in_process import InProcessBroker, configuration

QUEUES = """<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address>
<address name="dead"><anycast><queue name="dead"/></anycast></address></addresses>
<address-settings><address-setting match="#"><dead-letter-address>dead</dead-letter-address>
<max-delivery-attempts>2</max-delivery-attempts></address-setting></address-settings>"""
LOG_ID = "log"


class Bridged:
    """``core`` is XML below the core element; ``settings`` are those of the bridge, from the queue ``orders``."""

    def __init__(self, core: str = QUEUES, log: MemoryLog | None = None, **settings: object) -> None:
        self.world = InProcessBroker(configuration(core), log=log)
        self.config = BridgeConfig(**{"name": "b", "queue_name": "orders", **settings})  # type: ignore[arg-type]
        self.ends: list[End] = []
        self.confirmed: list[int] = []
        """How many messages at a time."""
        self.looped: list[int] = []
        """Messages that came back."""
        self.openings: list[BridgeConnection] = []
        self.sender = self.world.client("sender").greet()
        self.connect()

    def connect(self, suspects: int = 0, suspected: int = 0) -> None:
        """The bridge connects (again)."""
        self.openings.clear()
        self._reader = FrameReader()
        self.connection = BridgeConnection(
            self.world.turns, self.config, Login("there", "u", "p", self.config.client_id), "there:61613", LOG_ID,
            connect_ms=10_000, suspects=suspects, suspected=suspected, on_open=self.openings.append,
            on_confirmed=self.confirmed.append,
            on_loop=lambda numbers, _: self.looped.extend(numbers), on_end=lambda _, end: self.ends.append(end),
        )  # fmt: skip
        self.transport = FakeTransport(self.world.loop, self.connection)
        self.connection.connection_made(self.transport)
        self.world.settle()

    # ---- the other broker ------------------------------------------------------------------------

    def log_in(self, **headers: str) -> None:
        """It lets the bridge in."""
        (greeting,) = self.sent()
        assert (greeting.command, greeting.headers["accept-version"]) == ("CONNECT", "1.2")
        self.answer("CONNECTED", **{"version": "1.2", **headers})

    def answer(self, command: str, **headers: str) -> None:
        """It sends a frame; underscores in names stand for hyphens."""
        self.write(frame(command, [(name.replace("_", "-"), value) for name, value in headers.items()]))

    def confirm(self, *frames: ServerFrame) -> None:
        """It has these messages."""
        for each in frames:
            self.answer("RECEIPT", receipt_id=each.headers["receipt"])

    def write(self, data: bytes) -> None:
        """It sends bytes."""
        while data:
            assert self.transport.reading
            buffer = self.connection.get_buffer(-1)
            part, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(part)] = part
            self.connection.buffer_updated(len(part))
            self.world.settle()

    def sent(self) -> list[ServerFrame]:
        """What it got since the last call, without heart-beats."""
        self._reader.feed(bytes(self.transport.taken))
        self.transport.taken.clear()
        return self._reader.frames()

    def bodies(self) -> list[bytes]:
        """The same, of messages."""
        return [each.body for each in self.sent()]

    def lose(self) -> None:
        """The connection breaks."""
        self.transport.lose()
        self.world.settle()

    # ---- this broker -----------------------------------------------------------------------------

    def send(self, *bodies: bytes, to: str = "/queue/orders", **headers: str) -> None:
        """Somebody sends messages here."""
        for body in bodies:
            self.sender.send(frame("SEND", [("destination", to), *headers.items()], body))

    def depth(self, queue: str = "orders") -> int:
        """How many messages a queue has."""
        return self.world.queue(queue).message_count

    def attempts(self) -> list[tuple[int, int]]:
        """Of each message that waits on ``orders``: how often it was returned, and how often it has failed."""
        return [(entry.returned, entry.attempts) for entry in self.world.queue("orders").contents.order]


def opened(core: str = QUEUES, log: MemoryLog | None = None, **settings: object) -> Bridged:
    """A bridge that has logged in."""
    bridged = Bridged(core, log, **settings)
    bridged.log_in()
    assert bridged.openings
    return bridged
