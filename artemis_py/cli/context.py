"""``artemis-py context``: brokers by name, with where they are and how to log in, so that no command need repeat it.

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
from urllib.parse import unquote, urlsplit, urlunsplit

from artemis_py.atomic_files import replace_file
from artemis_py.errors import AdviceError, ArtemisError
from artemis_py.terminal_output import as_called, as_json, say, say_made
from artemis_py.text_table import Column, print_table

HELP: Final = "name brokers, and choose the one that commands ask"
CONTEXT_NAME: Final = "ARTEMIS_PY_CONTEXT"
LOGIN: Final = ("user", "password-file", "token-file")
TLS: Final = ("ca-file", "certificate-file", "key-file")
FIELDS: Final = ("url", "stomp-url", *LOGIN, *TLS)
"""What a context may say. Files are relative to the folder of the file with the contexts."""
SECRETS: Final = ("password-file", "token-file", "key-file")
_CURRENT: Final = "current"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HELPS: Final = {
    "url": "its HTTP acceptor, http://host:port",
    "stomp-url": "its STOMP acceptor, stomp://host:port or stomp+ssl://host:port",
    "user": "login",
    "password-file": "the file whose first line is the password; only you may read it",
    "token-file": "the file whose first line is a token; only you may read it",
    "ca-file": "certificates to trust, in PEM",
    "certificate-file": "the client's certificate, in PEM",
    "key-file": "the client's key, in PEM; only you may read it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``ls``, ``show [NAME]``, ``use NAME``, ``add NAME …`` and ``remove NAME``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ls|show|use|add|remove")
    listing = actions.add_parser("ls", help="list the contexts")
    show = actions.add_parser("show", help="show a context, or the one in use")
    use = actions.add_parser("use", help="use a context from now on")
    add = actions.add_parser("add", help="add a context, or change what it says")
    remove = actions.add_parser("remove", help="remove a context; the files that it names stay")
    for each in (listing, show):
        each.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument("name", metavar="NAME", nargs="?", help="the context")
    for each in (use, add, remove):
        each.add_argument("name", metavar="NAME", help="the context")
    for name in FIELDS:
        add.add_argument(f"--{name}", metavar="FILE" if name.endswith("-file") else "TEXT", help=_HELPS[name])
    add.add_argument("--use", action="store_true", help="use it from now on")
    parser.epilog = (
        f"Any command takes --context NAME; {CONTEXT_NAME} names one for a shell. "
        "The file is artemis-py/contexts.toml in XDG_CONFIG_HOME, or in ~/.config."
    )


def run(args: argparse.Namespace) -> int:
    """Carries out the action. Raises ContextError."""
    contexts = Contexts.read()
    if args.action == "ls":
        _list(contexts, as_lines=args.json)
    elif args.action == "show":
        _show(contexts, args.name, as_object=args.json)
    elif args.action == "use":
        contexts.get(args.name)
        contexts.current = args.name
        contexts.write()
        say(f"commands ask {args.name} from now on")
    elif args.action == "add":
        _add(contexts, args)
    else:
        contexts.get(args.name)
        del contexts.by_name[args.name]
        contexts.current = None if contexts.current == args.name else contexts.current
        contexts.write()
        say(f"removed {args.name}")
    return 0


def _chosen(contexts: Contexts) -> str | None:
    return os.environ.get(CONTEXT_NAME) or contexts.current


def _list(contexts: Contexts, *, as_lines: bool) -> None:
    chosen = _chosen(contexts)
    if as_lines:
        for name, fields in contexts.by_name.items():
            say_made(as_json({"name": name, "inUse": name == chosen, **fields}))
        return
    if not contexts.by_name:
        add = "artemis-py context add NAME --url http://host:port --stomp-url stomp://host:port"
        say(f"no context; add one:  {as_called(add)}")
        return
    rows = [
        ("*" if name == chosen else "", name, *(fields.get(key, "") for key in ("url", "stomp-url", "user")))
        for name, fields in contexts.by_name.items()
    ]
    print_table([Column(), *map(Column, ("name", "url", "stomp-url", "user"))], rows)


def _show(contexts: Contexts, name: str | None, *, as_object: bool) -> None:
    shown = name or _chosen(contexts)
    if shown is None:
        raise ContextError("no context is in use; artemis-py context ls lists them")
    fields = contexts.get(shown)
    if as_object:
        say_made(as_json({"name": shown, **fields}))
        return
    say(shown)
    print_table([Column()] * 2, [(key, fields[key]) for key in FIELDS if key in fields], indent=2)


def _add(contexts: Contexts, args: argparse.Namespace) -> None:
    name = check_name(args.name)
    is_new = name not in contexts.by_name
    fields = dict(contexts.by_name.get(name, {}))
    for key in FIELDS:
        value = getattr(args, key.replace("-", "_"))
        if value is None:
            continue
        if key.endswith("url"):
            _check_url(key, value)
        elif key.endswith("-file"):
            value = str(Path(value).expanduser().absolute())
            if key not in {"ca-file", "certificate-file"}:
                check_private(Path(value), f"--{key}")
        fields[key] = value
    if not {"url", "stomp-url"} & fields.keys():
        raise ContextError("a context needs --url http://host:port or --stomp-url stomp://host:port")
    contexts.by_name[name] = fields
    if args.use or not contexts.by_name.keys() - {name}:
        contexts.current = name
    contexts.write()
    used = ", which commands ask from now on" if contexts.current == name else ""
    say(f"{'added' if is_new else 'changed'} {name}{used}")


def _check_url(key: str, value: str) -> None:
    url, _ = without_user(value)
    schemes = ("http://", "https://") if key == "url" else ("stomp://", "tcp://", "stomp+ssl://", "ssl://")
    if not url.startswith(schemes):
        raise ContextError(f"--{key} begins with {' or '.join(schemes)}, and {value[:200]!r} does not")


# ---- the file --------------------------------------------------------------------------------------------------------


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
            raise ContextError(f"{path} is not TOML: {error}") from None
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
        raise ContextError(f"{name[:100]!r} is not a name for a context: letters, digits, dot, dash and underscore")
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


def without_user(url: str) -> tuple[str, str | None]:
    """The URL without its user, and the user. Raises ArtemisError for a URL with a password."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ArtemisError(f"this is not a URL: {error}") from None
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, None
    if ":" in user:
        raise ArtemisError("a URL must not contain a password; write it to a file, and give --password-file FILE")
    return urlunsplit(parts._replace(netloc=place)), unquote(user)
