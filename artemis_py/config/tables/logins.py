"""Where users come from: the login.config of an Artemis instance, and authenticators that broker.xml names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from artemis_py.config.tables.entities import NOWHERE, Origin


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JaasConfig:
    """A login.config, and the domains in it for clients without and with a certificate. ``file`` is its path."""

    file: str
    domain: str
    certificate_domain: str | None = None
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapUsers:
    """The first users of Artemis' basic security manager: one user, or the paths of a file of users and one of roles.
    ``password`` never appears in a ``repr``.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    role: str | None = None
    user_file: str | None = None
    role_file: str | None = None
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatorConfig:
    """An ``authenticator`` by the name of its entry point, with options. Values may be secret: no ``repr`` has them."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSources:
    """All sources of users that the configuration names, in the order in which they are asked. ``has_files``: there is
    a users file, named or beside broker.xml, or the start makes one.
    """

    jaas: JaasConfig | None = None
    bootstrap: BootstrapUsers | None = None
    has_files: bool = False
    authenticators: tuple[AuthenticatorConfig, ...] = ()

    @property
    def are_known(self) -> bool:
        """Is there any?"""
        return self.of_instance or self.has_files or bool(self.authenticators)

    @property
    def of_instance(self) -> bool:
        """Do the files of an Artemis instance say who may log in? Then files that are merely there do not count."""
        return self.jaas is not None or self.bootstrap is not None
