"""``artemis-py context``: brokers by name, with where they are and how to log in."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from artemis_py.cli.contexts import CONTEXT_NAME, FIELDS, ContextError, Contexts, check_name, check_private
from artemis_py.cli.logins import without_user
from artemis_py.shown import as_json, say, say_made

HELP: Final = "name brokers, and choose the one that commands ask"
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
    use = actions.add_parser("use", help="let commands use a context from now on")
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
        say("no context; add one:  artemis-py context add NAME --url http://host:port --stomp-url stomp://host:port")
        return
    width = max(map(len, contexts.by_name))
    for name, fields in contexts.by_name.items():
        places = "  ".join(fields[key] for key in ("url", "stomp-url") if key in fields)
        who = f"  as {fields['user']}" if "user" in fields else ""
        say(f"{'*' if name == chosen else ' '} {name:<{width}}  {places}{who}")


def _show(contexts: Contexts, name: str | None, *, as_object: bool) -> None:
    shown = name or _chosen(contexts)
    if shown is None:
        raise ContextError("no context is in use; artemis-py context ls lists them")
    fields = contexts.get(shown)
    if as_object:
        say_made(as_json({"name": shown, **fields}))
        return
    say(shown)
    for key in FIELDS:
        if key in fields:
            say(f"  {key:<16}  {fields[key]}")


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
