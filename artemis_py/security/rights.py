"""Who may do what on which address: the permissions of broker.xml, enforced.

The rules are Artemis': the most specific security-setting that matches decides alone; one for ``address::queue`` counts
for that queue only, and only when written out in full; where none matches, nobody may do anything. A consumer that is
denied on a queue, and did not name it in full, gets a second chance where a security-setting is written out as
``address.queue`` (the way in which Artemis 1 named a queue, which Artemis still honours).

What is remembered is bounded: which setting decides about an address is kept for ``authorization-cache-size`` names;
what somebody may do is kept for each setting of the file, not for each name.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, final
from weakref import WeakValueDictionary

from artemis_py.config.security_settings import PERMISSIONS, SecuritySetting
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import NotAllowedError
from artemis_py.message import encode_headers
from artemis_py.security.identity import Identity

_NAME_MAX: Final = 1024
"""The longest name that is remembered: clients choose the names."""
_CHARACTERS_MAX: Final = 1 << 20
_SHOWN_MAX: Final = 256
"""How many characters of a name an error shows."""
_COMPLAINTS_MAX: Final = 1000
_TEXTS: Final = {name: re.sub(r"([A-Z])", r"_\1", name).upper() for name in PERMISSIONS}
"""The permissions as Artemis' errors name them: ``createDurableQueue`` is ``CREATE_DURABLE_QUEUE``."""
_CONSUMING: Final = frozenset({"consume", "browse"})
USER_HEADER: Final = "JMSXUserID"
DENIED: Final = "AMQ229032"
"""A message that begins so says that a user may not do something."""
NAMELESS: Final = "AMQ229225: Validated User is not set"
"""Why ``reject-empty-validated-user`` refuses a message."""


@final
class Decider:
    """One security-setting, ready to decide: for each permission the roles that have it."""

    __slots__ = ("_roles",)

    def __init__(self, setting: SecuritySetting | None) -> None:
        given = {} if setting is None else setting.roles
        self._roles: Final = {permission: frozenset(roles) for permission, roles in given.items()}

    def grants(self, roles: frozenset[str]) -> frozenset[str]:
        """Return the permissions of somebody with all of ``roles``."""
        return frozenset(name for name, having in self._roles.items() if not having.isdisjoint(roles))


@final
class Checks:
    """How often somebody was allowed to do something, and how often not. The numbers only grow."""

    __slots__ = ("failure", "success")

    def __init__(self) -> None:
        self.success = 0
        self.failure = 0


class Peer(NamedTuple):
    """Where a client is, as host:port, and the acceptor that it came by; empty if unknown."""

    address: str = ""
    acceptor: str = ""


UNKNOWN_PEER: Final = Peer()


@final
class Authorizer:
    """The permissions of one configuration. For one thread.

    ``tell`` gets one line for each user and address that was denied something, the kind of the line, which is the same
    for all lines about one user, the user, and the address and acceptor of the client (empty if unknown).
    """

    __slots__ = ("_characters", "_deciders", "_nobody", "_of_setting", "_populates", "_rejects", "_rights", "_security",
                 "_size_max", "_tell", "_told", "checks", "on_denial", "peer_of")  # fmt: skip

    def __init__(self, config: BrokerConfig, tell: Callable[[str, str, str, str, str], None] | None = None) -> None:
        self.checks: Final = Checks()
        self._security = config.security
        self._populates: Final = config.populate_validated_user
        self._rejects: Final = config.reject_empty_validated_user
        self._size_max: Final = config.authorization_cache_size
        self._nobody: Final = Decider(None)
        self._of_setting = _deciders_of(config)
        self._deciders: OrderedDict[str, Decider] = OrderedDict()
        self._characters = 0
        self._rights: WeakValueDictionary[tuple[str, frozenset[str], Peer], Rights] = WeakValueDictionary()
        self._tell: Final = tell
        self._told: set[tuple[str, str]] = set()
        self.peer_of: Callable[[str], Peer] = lambda _user: UNKNOWN_PEER
        """The client of this user whose frame is being carried out, as far as somebody knows."""
        self.on_denial: Callable[[str, str, str], None] | None = None
        """Hears of each denial: who, which permission in the words of Artemis, and on which address."""

    def use(self, config: BrokerConfig) -> None:
        """The security-settings of another configuration count from now on, also for those who have logged in. Whoever
        consumes already goes on.
        """
        self._security = config.security
        self._of_setting = _deciders_of(config)
        self._deciders.clear()
        self._characters = 0
        self._told.clear()
        for rights in list(self._rights.values()):
            rights.forget()

    def rights_of(self, identity: Identity, peer: Peer = UNKNOWN_PEER) -> Rights:
        """Return the rights of somebody who has logged in; all sessions of one user with the same roles share them.
        ``peer``: the client, where it sends requests and no frames; denials are logged with it.
        """
        key = (identity.user, identity.roles, peer)
        found = self._rights.get(key)
        if found is None:
            stamp = encode_headers([(USER_HEADER, identity.user)])[:-1] if self._populates and identity.user else None
            found = Rights(self, identity, stamp, peer, rejects=self._rejects and stamp is None)
            self._rights[key] = found
        return found

    def decider_of(self, address: str, queue: str | None = None) -> Decider:
        """Return what decides about an address, or about a queue of it named in full."""
        name = address if queue is None else f"{address}::{queue}"
        found = self._deciders.get(name)
        if found is not None:
            self._deciders.move_to_end(name)
            return found
        setting = self._security.setting_for(name)
        found = self._nobody if setting is None else self._of_setting[setting.match]
        if len(name) <= _NAME_MAX and self._size_max > 0:
            self._deciders[name] = found
            self._characters += len(name)
            while len(self._deciders) > self._size_max or self._characters > _CHARACTERS_MAX:
                forgotten, _ = self._deciders.popitem(last=False)
                self._characters -= len(forgotten)
        return found

    def decider_written_out(self, name: str) -> Decider | None:
        """Return the setting with exactly this match, without wildcards, or None."""
        return self._of_setting[name] if self._security.is_written_out(name) else None

    def note_denial(self, user: str, permission: str, address: str, reason: str, peer: Peer) -> None:
        """Count a denial, and log the first for this user and address."""
        self.checks.failure += 1
        if self.on_denial is not None:
            self.on_denial(user, permission, address[:_SHOWN_MAX])
        known = (user, address[:_SHOWN_MAX])
        if self._tell is None or known in self._told:
            return
        if len(self._told) >= _COMPLAINTS_MAX:
            self._told.clear()
        self._told.add(known)
        known_peer = self.peer_of(user) if peer == UNKNOWN_PEER else peer
        self._tell(reason, f"denied to {user}", user, *known_peer)


def _deciders_of(config: BrokerConfig) -> dict[str, Decider]:
    return {setting.match: Decider(setting) for setting in config.security.settings}


@final
class Rights:
    """What one user may do. Made by ``Authorizer.rights_of``."""

    __slots__ = ("__weakref__", "_authorizer", "_granted", "_peer", "_rejects", "checks", "roles", "senders", "stamp",
                 "user")  # fmt: skip

    def __init__(
        self, authorizer: Authorizer, identity: Identity, stamp: bytes | None, peer: Peer, *, rejects: bool
    ) -> None:
        self._authorizer: Final = authorizer
        self._rejects: Final = rejects
        self._peer: Final = peer
        self._granted: dict[Decider, frozenset[str]] = {}
        self.user: Final = identity.user
        self.roles: Final = identity.roles
        self.checks: Final = authorizer.checks
        self.stamp: Final = stamp
        """The header line with the user's name for messages (``populate-validated-user``); None: none is written."""
        self.senders: Final[set[Decider]] = set()
        """The settings by which this user was allowed to send: a sender's next messages only look here."""

    def forget(self) -> None:
        """Other settings count now: nothing that was decided before holds."""
        self._granted.clear()
        self.senders.clear()

    def may(self, permission: str, address: str, queue: str | None = None, *, in_full: bool = False) -> bool:
        """Return whether the user has a permission on an address, or on a queue of it; ``in_full``: the client named it
        ``address::queue``. Counts nothing.
        """
        if self._has(permission, self._authorizer.decider_of(address, queue)):
            return True
        if queue is None or in_full or permission not in _CONSUMING:
            return False
        older = self._authorizer.decider_written_out(f"{address}.{queue}")
        return older is not None and self._has(permission, older)

    def demand(self, permission: str, address: str, queue: str | None = None, *, in_full: bool = False) -> None:
        """Do nothing if the user has a permission. Raises NotAllowedError, with the text of Artemis."""
        if not self.may(permission, address, queue, in_full=in_full):
            raise NotAllowedError(self._denied(permission, address, queue))
        self.checks.success += 1

    def demand_send(self, address: str, queue: str | None = None) -> Decider:
        """The same for ``send``. Returns what decided, which is in ``senders`` from now on. Raises NotAllowedError,
        also for a user without a name where ``reject-empty-validated-user`` asks for one.
        """
        self.demand("send", address, queue)
        if self._rejects:
            raise NotAllowedError(NAMELESS)
        decider = self._authorizer.decider_of(address, queue)
        self.senders.add(decider)
        return decider

    def _has(self, permission: str, decider: Decider) -> bool:
        granted = self._granted.get(decider)
        if granted is None:
            granted = self._granted[decider] = decider.grants(self.roles)
        return permission in granted

    def _denied(self, permission: str, address: str, queue: str | None) -> str:
        what = f"User: {self.user} does not have permission='{_TEXTS[permission]}'"
        place = f"on address {address[:_SHOWN_MAX]}"
        if queue is None:
            reason = f"{DENIED}: {what} {place}"
        else:
            reason = f"AMQ229213: {what} for queue {queue[:_SHOWN_MAX]} {place}"
        self._authorizer.note_denial(self.user, _TEXTS[permission], address, reason, self._peer)
        return reason
