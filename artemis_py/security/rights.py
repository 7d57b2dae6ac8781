"""Who may do what on which address: the permissions of broker.xml, enforced, and explained to people.

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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, final
from weakref import WeakValueDictionary
from xml.sax.saxutils import quoteattr

from artemis_py.config.matching import setting_matches, uuid_key
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

    def how_to_grant(self, permission: str, address: str, prefix: str, roles: frozenset[str]) -> str:
        """Where broker.xml grants a permission of management to one of these roles, and the line to paste there. A new
        setting keeps what the one that decides so far grants: it would decide alone.
        """
        setting = self._security.setting_for(address)
        given = {} if setting is None else setting.roles
        wanted = {kind: given.get(kind, ()) for kind in ("view", "edit")}
        wanted[permission] = tuple(dict.fromkeys((*wanted[permission], min(roles, default="ROLE"))))
        lines = {
            kind: f"<permission type={quoteattr(kind)} roles={quoteattr(','.join(having))}/>"
            for kind, having in wanted.items()
            if having
        }
        if setting is not None and setting.match.startswith(f"{prefix}."):
            return f"write in the security-setting {setting.match} of broker.xml: {lines[permission]}"
        added = "".join(lines.values())
        return f"add to broker.xml: <security-setting match={quoteattr(f'{prefix}.#')}>{added}</security-setting>"

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


# ---- access, for people to read (explain) --------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """One permission and the roles that have it; no roles: nobody has it.

    ``mapped`` gives for each role that stands for others by ``role-mapping`` those of them that have it.
    """

    permission: str
    roles: tuple[str, ...]
    mapped: dict[str, tuple[str, ...]]


@final
@dataclass(frozen=True, slots=True)
class Access:
    """What the security-settings say about one address or ``address::queue``.

    ``setting`` is the one that decides, None where nothing matches. ``passed_over`` are the others that match, in the
    order of the file: what they grant does not count. ``grants`` has every permission once.
    """

    name: str
    setting: SecuritySetting | None
    passed_over: tuple[SecuritySetting, ...]
    grants: tuple[Grant, ...]

    def permissions_of(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Return what somebody with all of ``roles`` may do."""
        held = frozenset(roles)
        return tuple(grant.permission for grant in self.grants if not held.isdisjoint(grant.roles))


def access_to(config: BrokerConfig, name: str) -> Access:
    """Resolve the permissions on ``name``, an address or ``address::queue``."""
    setting = config.security.setting_for(name)
    address = uuid_key(name.partition("::")[0], config.uuid_namespace, config.wildcards.delimiter)
    passed_over = tuple(
        other
        for other in config.security.settings
        if other is not setting and (other.match == name or setting_matches(other.match, address, config.wildcards))
    )
    grants = tuple(_grant(config, setting, permission) for permission in PERMISSIONS)
    return Access(name, setting, passed_over, grants)


def _grant(config: BrokerConfig, setting: SecuritySetting | None, permission: str) -> Grant:
    roles = setting.roles.get(permission, ()) if setting is not None else ()
    mapped: dict[str, tuple[str, ...]] = {}
    for role in roles:
        for outside in config.security.role_mappings.get(role, ()):
            mapped[outside] = (*mapped.get(outside, ()), role)
    return Grant(permission, roles, mapped)


# ---- what a client means to do with a destination ------------------------------------------------
#
# Asked before anything is created for it, so that nothing is created for somebody who may not use it.


@final
class Permit:
    """Asks for the permissions in Artemis' order: to create an address, to create a queue, to use them.

    ``permission`` is the last of these: ``send``, ``consume`` or ``browse``. Every method raises NotAllowedError.
    """

    __slots__ = ("_permission", "_rights")

    def __init__(self, rights: Rights, permission: str) -> None:
        self._rights = rights
        self._permission = permission

    def to_create_address(self, address: str) -> None:
        """May the address be created for this client?"""
        self._rights.demand("createAddress", address)

    def to_create_queue(self, address: str, queue: str, *, durable: bool) -> None:
        """May the queue be created for this client?"""
        self._rights.demand("createDurableQueue" if durable else "createNonDurableQueue", address, queue)

    def allows(self, address: str, queue: str) -> bool:
        """May the client consume from or browse this queue? Nobody hears of a refusal."""
        return self._rights.may(self._permission, address, queue)

    def to_use(self, address: str, queue: str | None, *, in_full: bool = False) -> None:
        """May the client send to or read from it? A sender names a queue only by a fully qualified name; ``in_full``
        says whether a consumer does.
        """
        if self._permission == "send":
            self._rights.demand_send(address, queue)
        else:
            self._rights.demand(self._permission, address, queue, in_full=in_full)
