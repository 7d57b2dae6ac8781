"""Brokers by name: a file says where each one is and how to log in there, so that no command need repeat it.

The file never holds a password or a token, only the names of files that do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from artemis_py.atomic_files import replace_file
from artemis_py.errors import AdviceError, ArtemisError

CONTEXT_NAME: Final = "ARTEMIS_PY_CONTEXT"
URL_NAME: Final = "ARTEMIS_PY_URL"
STOMP_URL_NAME: Final = "ARTEMIS_PY_STOMP_URL"
URL: Final = "http://127.0.0.1:8161"
STOMP_URL: Final = "stomp://127.0.0.1:61613"
_LOGIN: Final = ("user", "password-file", "token-file")
_LOGIN_VARIABLES: Final = ("ARTEMIS_PY_USER", "ARTEMIS_PY_TOKEN")
_TLS: Final = ("ca-file", "certificate-file", "key-file")
FIELDS: Final = ("url", "stomp-url", *_LOGIN, *_TLS)
"""What a context may say. Files are relative to the folder of the file with the contexts."""
_SECRETS: Final = ("password-file", "token-file", "key-file")
_CURRENT: Final = "current"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ContextError(ArtemisError):
    """There is no such context, or its file cannot be read or written."""


@final
@dataclass(slots=True)
class Contexts:
    """The contexts by name, and the name of the one that counts when a command names none."""

    path: Path
    by_name: dict[str, dict[str, str]] = field(default_factory=dict)
    current: str | None = None

    @staticmethod
    def read() -> Contexts:
        """The contexts of this user; none if there is no file. Raises ContextError."""
        path = path_of(os.environ)
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return Contexts(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ContextError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        except tomllib.TOMLDecodeError as error:
            raise ContextError(f"{path} is no TOML: {error}") from None
        return _checked(path, found)

    def get(self, name: str) -> dict[str, str]:
        """What a context says. Raises ContextError."""
        found = self.by_name.get(name)
        if found is None:
            known = ", ".join(self.by_name) or "none"
            raise ContextError(f"there is no context {name!r} in {self.path}; there are: {known}")
        return found

    def write(self) -> None:
        """Replace the file, readable by its owner alone. Raises ContextError."""
        lines = [] if self.current is None else [f"{_CURRENT} = {json.dumps(self.current)}", ""]
        for name, fields in self.by_name.items():
            lines += [f"[{name if '.' not in name else json.dumps(name)}]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
            lines.append("")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.path, "\n".join(lines).encode())
        except OSError as error:
            raise ContextError(f"{self.path} cannot be written: {error.strerror}") from None


def path_of(environment: Mapping[str, str]) -> Path:
    """The file: ``artemis-py/contexts.toml`` in the folder for configurations (XDG)."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if folder.startswith("/") else Path(environment.get("HOME") or "~").expanduser() / ".config"
    return base / "artemis-py" / "contexts.toml"


def check_name(name: str) -> str:
    """The name of a context. Raises ContextError."""
    if not _NAME.fullmatch(name) or name == _CURRENT:
        raise ContextError(f"{name[:100]!r} is no name for a context: letters, digits, dot, dash and underscore")
    return name


def _checked(path: Path, found: Mapping[str, Any]) -> Contexts:
    contexts = Contexts(path)
    for name, value in found.items():
        if name == _CURRENT and isinstance(value, str):
            contexts.current = value
            continue
        if not isinstance(value, dict):
            raise ContextError(f"{path}: {name} is neither a context nor {_CURRENT}")
        for key, text in value.items():
            if key in ("password", "token"):
                raise ContextError(
                    f"{path}: [{name}] has a {key}; write it to a file that only you can read, and name that in "
                    f"{key}-file"
                )
            if key not in FIELDS or not isinstance(text, str):
                raise ContextError(f"{path}: [{name}] has {key}, and a context has texts named {', '.join(FIELDS)}")
        contexts.by_name[check_name(name)] = value
    return contexts


def add_context(group: argparse._ActionsContainer) -> None:
    """Adds ``--context``."""
    group.add_argument(
        "--context",
        metavar="NAME",
        help=f"the broker and login of this name (else {CONTEXT_NAME}, else the one in use; artemis-py context ls)",
    )


def url_for(args: argparse.Namespace, given: str | None) -> str:
    """The HTTP acceptor to ask, and ``args`` completed with the login and the files that its context names.

    What is given on the command line counts first, then ``--context``, then the variables of the environment, then the
    context that the environment names or that is in use. A login and the files of TLS belong to their context: nothing
    of it goes to a URL from elsewhere. Raises ContextError.
    """
    return _complete(args, given, "url", URL_NAME, URL)


def stomp_url_for(args: argparse.Namespace, given: str | None) -> str:
    """As ``url_for``, for the STOMP acceptor."""
    return _complete(args, given, "stomp-url", STOMP_URL_NAME, STOMP_URL)


def _complete(args: argparse.Namespace, given: str | None, which: str, variable: str, default: str) -> str:
    named = getattr(args, "context", None)
    chosen = given or (None if named else os.environ.get(variable))
    if chosen and not named:
        return chosen
    contexts = Contexts.read()
    name = named or os.environ.get(CONTEXT_NAME) or contexts.current
    if not name:
        return default
    fields = contexts.get(name)
    _fill_in(args, fields, contexts.path.parent, is_named=bool(named))
    if chosen is None and which not in fields:
        raise AdviceError(
            f"the context {name} has no {which}",
            f"add it:  artemis-py context add {name} --{which} {default}",
        )
    return chosen or fields[which]


def _fill_in(args: argparse.Namespace, fields: Mapping[str, str], folder: Path, *, is_named: bool) -> None:
    login_is_given = any(_value(args, name) for name in _LOGIN)
    from_environment = not is_named and any(os.environ.get(name) for name in _LOGIN_VARIABLES)
    for names, is_taken in ((_LOGIN, not login_is_given and not from_environment), (_TLS, True)):
        for name in names:
            if is_taken and name in fields and not _value(args, name):
                value = fields[name] if name == "user" else str(folder / Path(fields[name]).expanduser())
                if name in _SECRETS:
                    check_private(Path(value), name)
                setattr(args, name.replace("-", "_"), value)


def check_private(path: Path, name: str) -> None:
    """Raises AdviceError if others can read a file with a secret."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ContextError(f"{name} {path} cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise AdviceError(
            f"{name} {path} can be read by others (mode {stat.S_IMODE(mode):04o})",
            f"make it private:  chmod 600 {path}",
        )


def _value(args: argparse.Namespace, name: str) -> str | None:
    value: str | None = getattr(args, name.replace("-", "_"), None)
    return value
