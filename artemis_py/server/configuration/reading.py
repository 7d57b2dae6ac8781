"""Reads the configuration again, as the start did. It blocks, so it is for a thread."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Final, final

from artemis_py.config.changes import Plan, plan_of, without_places
from artemis_py.config.problems import ERROR, WARNING, Problems, told
from artemis_py.config.reader import PROPERTIES_FILE, load
from artemis_py.config.security_settings import SecurityConfig
from artemis_py.config.settings import AcceptorConfig, BrokerConfig, CoreSettings, SettingsRepository
from artemis_py.errors import ArtemisError, ConfigError, Problem
from artemis_py.security.identity import Authenticator
from artemis_py.security.realms import open_realms
from artemis_py.server.ports import Exchange

_SETTLED_S: Final = 1.0
"""A file that makes no sense and was changed less than this before may be half written: it is read again."""
_AGAIN_S: Final = 0.2
_TRIES_MAX: Final = 20
_SWITCH_S: Final = 0.0005
"""How long the event loop waits for the interpreter while the file is read, at most."""

_OF_THE_START: Final = (
    *(field.name for field in fields(CoreSettings)),
    "wildcards", "properties", "user_limits", "journal_retention", "shared_store",
    "web_access",
)  # fmt: skip
"""What only a start reads."""

Stamps = tuple[tuple[str, object], ...]


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What the process was started with: the file or folder, properties, and what counts as an error."""

    path: Path
    properties: Sequence[str] = ()
    silenced: Collection[str] = ()
    strict: bool = False


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """``config`` is what the files say, ``in_force`` what a running broker makes of it. ``authenticator`` is None if
    logins stay as they are. ``plan`` is what changes; ``pending`` needs a restart, since the broker began.
    """

    config: BrokerConfig
    in_force: BrokerConfig
    plan: Plan
    pending: Plan
    exchange: Exchange
    authenticator: Authenticator | None


def read(
    source: Source,
    start: BrokerConfig,
    old: BrokerConfig,
    prepare: Callable[[Sequence[AcceptorConfig]], Exchange] | None,
    realms: Authenticator | None = None,
) -> Reading:
    """Read and check everything. ``start`` is the configuration that the broker began with, ``old`` the one in force,
    with ``realms``. ``prepare`` binds ports. Raises ArtemisError; then no port is bound.
    """
    with _SHARING.begun():
        config = _load_when_settled(source, old.files)
        problems = Problems()
        authenticator = _logins(config, old, problems, realms) if start.security_enabled else None
        notices = told([*config.notices, *problems.in_order(config.file)], source.silenced)
        if source.strict and any(notice.severity == WARNING for notice in notices):
            raise ConfigError(notices)
        reached = in_force(old, config)
        plan, pending = plan_of(old, config), plan_of(start, config)
        exchange = Exchange() if prepare is None else prepare(config.acceptors)
        return Reading(config, reached, plan, pending, exchange, authenticator)


def in_force(old: BrokerConfig, new: BrokerConfig) -> BrokerConfig:
    """The configuration of a running broker that goes from ``old`` to ``new``. Matches are read with the wildcards that
    it began with. Raises MatchError when one makes no sense with them.
    """
    kept = {name: getattr(old, name) for name in _OF_THE_START}
    settings, security = new.address_settings, new.security
    if (old.wildcards, old.literal_match_markers, old.uuid_namespace) != (
        new.wildcards, new.literal_match_markers, new.uuid_namespace,
    ):  # fmt: skip
        settings = SettingsRepository(
            settings.entries,
            old.wildcards,
            literal_match_markers=old.literal_match_markers,
            uuid_namespace=old.uuid_namespace,
        )
        security = SecurityConfig(
            security.settings,
            old.wildcards,
            role_mappings=security.role_mappings,
            uuid_namespace=old.uuid_namespace,
        )
    return replace(new, address_settings=settings, security=security, **kept)


def _load_when_settled(source: Source, files: Iterable[str]) -> BrokerConfig:
    """Read the files. If they are wrong and have just been written, somebody may still be writing them: look again."""
    for left in range(_TRIES_MAX, -1, -1):
        before = stamps_of(source.path, files)
        try:
            config = load(source.path, properties=source.properties)
        except ConfigError:
            if left and (stamps_of(source.path, files) != before or not _are_settled(source.path, files)):
                time.sleep(_AGAIN_S)
                continue
            raise
        if left == 0 or stamps_of(source.path, files) == before:
            return config
    raise AssertionError("the last try returns or raises")


def _are_settled(path: Path, files: Iterable[str]) -> bool:
    now_s = time.time()
    for file in {str(path), *files}:
        try:
            if 0 <= now_s - os.stat(file).st_mtime < _SETTLED_S:
                return False
        except OSError:
            continue
    return True


def _logins(
    config: BrokerConfig, old: BrokerConfig, problems: Problems, realms: Authenticator | None
) -> Authenticator | None:
    """Open the sources of users again if they have changed, or come from a login.config, as a start would: what is
    wrong with them refuses the file. Files of users are read anew by themselves.
    """
    is_same = without_places((config.logins, config.users_file)) == without_places((old.logins, old.users_file))
    return None if is_same and config.logins.jaas is None else open_realms(config, problems, realms)


@final
class _Sharing:
    """Has threads share the interpreter more often while at least one reads: the setting is that of the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._usual_s = 0.0

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Until this ends."""
        with self._lock:
            if not self._count:
                self._usual_s = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual_s, _SWITCH_S))
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if not self._count:
                    sys.setswitchinterval(self._usual_s)


_SHARING: Final = _Sharing()


def stamps_of(path: Path, files: Iterable[str]) -> Stamps:
    """The stamps of the main file, of those read with it, and of properties beside it: they change with the files."""
    folder = path if os.path.isdir(path) else path.parent
    names = dict.fromkeys(str(each) for each in (path, *_parts(files), folder / PROPERTIES_FILE))
    return tuple((name, stamp_of(name)) for name in names)


def _parts(files: Iterable[str]) -> list[str]:
    """The files, and those in folders among them. Several may stand together with commas between."""
    found: list[str] = []
    for each in (part for file in files for part in file.split(",")):
        found.append(each)
        if os.path.isdir(each):
            with suppress(OSError):  # reading it says why
                found += sorted(os.path.join(each, name) for name in os.listdir(each))
    return found


def stamp_of(name: str) -> object:
    """The stamp of a file, which changes with it."""
    try:
        found = os.stat(name)
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_size, found.st_ino


def problems_of(error: Exception) -> list[Problem]:
    """What a configuration is refused for, with places where they are known: its errors, or its warnings where those
    count as errors.
    """
    if isinstance(error, ConfigError):
        return [each for each in error.problems if each.severity == ERROR] or warnings_of(error)
    from artemis_py.server.tls.context import TlsError

    if isinstance(error, TlsError):
        return [error.problem]
    told = str(error) if isinstance(error, ArtemisError) else f"{type(error).__name__}: {error}"
    return [Problem("error", "", 0, told)]


def warnings_of(error: Exception) -> list[Problem]:
    """The warnings among what was found in a configuration that is refused."""
    return [each for each in error.problems if each.severity == WARNING] if isinstance(error, ConfigError) else []
