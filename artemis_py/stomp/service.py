"""What all STOMP connections of one acceptor share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.core.addresses.address import MULTICAST
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.broker import Broker
from artemis_py.core.replay.manager import Replays
from artemis_py.core.tasks import Awaited
from artemis_py.errors import NotAllowedError, NotFoundError
from artemis_py.security.login import Logins
from artemis_py.security.rights import NAMELESS, Authorizer
from artemis_py.stomp.foreign_headers import ForeignHeaders
from artemis_py.stomp.heartbeat import HeartbeatRules
from artemis_py.stomp.management_requests import RequestReceiver
from artemis_py.stomp.temporaries import Temporaries
from artemis_py.stomp.wire.dialect import Dialect, Prefixes
from artemis_py.stomp.wire.frames import VERSIONS, Limits, Send
from artemis_py.stomp.wire.parser import BodyRules, Parser
from artemis_py.uploads import BodyStore, IncomingBody
from artemis_py.version import VERSION

# ---- routes ----------------------------------------------------------------------------------------------------------
#
# The routes of recent SENDs, kept so that a destination is resolved once and not for each message.


ENTRIES_MAX: Final = 4096
TARGET_CHARACTERS_MAX: Final = 1024
CHARACTERS_MAX: Final = 1 << 20
"""Clients choose the names, so the table has a limit; at the limit it starts again from nothing."""


@final
class Routes:
    """One acceptor's routes, by ``Shape.target``. A route may be out of date (``Bindings.is_current``)."""

    __slots__ = ("_characters", "by_target")

    def __init__(self) -> None:
        self.by_target: dict[str, Route] = {}
        self._characters = 0

    def remember(self, target: str, route: Route) -> None:
        """Keep a route for the next SEND to the same target."""
        if target not in self.by_target:
            if len(target) > TARGET_CHARACTERS_MAX:
                return
            self._characters += len(target)
            if len(self.by_target) >= ENTRIES_MAX or self._characters > CHARACTERS_MAX:
                self.by_target.clear()
                self._characters = len(target)
        self.by_target[target] = route


# ---- service ---------------------------------------------------------------------------------------------------------
#
# What all STOMP connections of one acceptor share.


TURN_BYTES_MAX: Final = 131072
"""How many bytes one connection may get in one turn; its consumers share them."""
_TURN_BYTES_MIN: Final = 8192


def _nobody() -> None:
    """Without logins there is nothing to look at."""


class Traffic:
    """Counts frames by command, in both directions, in plain ints that a scrape reads."""

    __slots__ = ("frames_in", "frames_out", "sessions_open", "sessions_total")

    def __init__(self) -> None:
        self.frames_in: defaultdict[str, int] = defaultdict(int)
        self.frames_out: defaultdict[str, int] = defaultdict(int)
        self.sessions_open = 0
        self.sessions_total = 0


class StompService:
    """One acceptor's STOMP: its parameters, its dialects with their caches, its counters.

    Without ``large``, bodies of every size stay in memory. Without ``logins``, nobody has to log in; without
    ``authorizer``, everybody may do everything. ``wake`` has the server look at sessions whose login is decided.
    Without ``replays``, there is no log to replay.
    """

    def __init__(
        self,
        broker: Broker,
        acceptor: AcceptorConfig,
        traffic: Traffic,
        temporaries: Temporaries,
        large: BodyStore | None = None,
        *,
        logins: Logins | None = None,
        authorizer: Authorizer | None = None,
        wake: Callable[[], None] = _nobody,
        replays: Replays | None = None,
    ) -> None:
        self.broker = broker
        self.replays = replays
        self.receiver: RequestReceiver | None = None
        """Answers what is sent to the address of management; None: nobody does."""
        config = broker.config
        self.asked_address = config.management_address
        self.told_address = config.management_notification_address
        self.temporaries = temporaries
        self.routes = Routes()
        self._large = large
        self.traffic = traffic
        self.acceptor = acceptor
        self.limits = Limits.of(acceptor)
        self.prefixes = Prefixes.of(acceptor)
        self.foreign = ForeignHeaders(broker.host.events)
        self.dialects = {
            version: Dialect(version, acceptor, self.limits, asked_address=self.asked_address, foreign=self.foreign)
            for version in VERSIONS
        }
        self._body_rules = BodyRules(self.limits, None if large is None else self._upload)
        self.connect_dialect = Dialect("1.2", acceptor, self.limits.for_connect(acceptor))
        self.logins = logins
        self.authorizer = authorizer
        self.wake = wake
        self.drains = False
        """Does the broker wait for what is in delivery, and deliver nothing more?"""
        self.security_domain = acceptor.params.get("securityDomain") or None
        self.beat_rules = HeartbeatRules.of(acceptor, config.connection_ttl_override)
        self.window_bytes = acceptor.int_param("stompConsumerWindowSize")
        self.enable_message_id = acceptor.bool_param("stompEnableMessageId")
        server = acceptor.text_param("stompServerHeader") or f"artemis_py/{VERSION}"
        self.server_header = None if acceptor.bool_param("disableStompServerHeader") else server

    def turn_bytes(self, consumer_count: int) -> int:
        """How many bytes one of a connection's consumers may get in one turn."""
        if self.drains:
            return 0
        return max(TURN_BYTES_MAX // consumer_count, _TURN_BYTES_MIN) if consumer_count > 1 else TURN_BYTES_MAX

    def parser(self, version: str) -> Parser:
        """The parser for a connection's frames from now on."""
        return Parser(self.dialects[version], self._body_rules)

    def _upload(self, send: Send) -> IncomingBody:
        assert self._large is not None
        upload = self._large.begin(durable=send.shape.persistent)
        if self._large.is_full:
            address = self.broker.addresses.get(send.shape.address)
            if address is not None and address.refusal in {"FAIL", "DROP"}:
                upload.refuse("it is full by max-disk-usage or min-disk-free")
        return upload

    def check_may_send(self, address: str) -> None:
        """Raises NotFoundError for the addresses of management, where no message of a client is queued."""
        if address == self.told_address:
            raise NotFoundError(f"{address} is the address of notifications, where only the broker sends messages")
        if address == self.asked_address:
            raise NotFoundError(f"{address} is the address for management messages, which nobody queues")
        if address == SCHEDULES:
            raise NotFoundError(
                f"{address} has messages that the broker sends again and again; send to their address, with "
                "AMQ_SCHEDULED_CRON, or with AMQ_SCHEDULED_PERIOD and AMQ_SCHEDULED_REPEAT"
            )

    def check_may_read(self, address: str) -> None:
        """Raises NotFoundError for the address for management messages: there is nothing to read; and for the broker's
        own schedules.
        """
        if address == SCHEDULES:
            raise NotFoundError(f"{address} is not for consumers; see artemis-py schedule ls")
        if address == self.asked_address:
            raise NotFoundError(
                f"{address} is the address for management messages: send them there, and read the replies at the "
                f"destination that their reply-to names; {self.told_address} has notifications"
            )

    def open_notifications(self) -> None:
        """The address of notifications is there for whoever listens, whatever its settings say."""
        registry = self.broker.registry
        if self.told_address not in self.broker.addresses:
            address = registry.create_address(self.told_address, auto_created=True)
            address.add_routing_types((MULTICAST,))
            registry.note_address(address)

    def check_named(self) -> None:
        """Raises NotAllowedError where ``reject-empty-validated-user`` refuses messages of clients without a user: of
        all, while security is off.
        """
        if self.broker.config.reject_empty_validated_user:
            raise NotAllowedError(NAMELESS)

    @property
    def disk(self) -> Awaited | None:
        """What a sender of large bodies must wait for if the disk cannot keep up; None if it can."""
        if self._large is None or self._large.may_go_on:
            return None
        return self._large
