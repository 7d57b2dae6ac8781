"""How a command gets a password: from a file, the environment, a prompt, or an argument with a warning."""

from __future__ import annotations

import argparse
import os
import sys
from getpass import getpass
from typing import Final

from artemis_py.errors import ArtemisError
from artemis_py.security.users.accounts import NEW_PASSWORD
from artemis_py.terminal_output import warn

_LENGTH_MAX: Final = 65536


class PasswordError(ArtemisError):
    """There is no password, or none that can be used."""


def add_password(parser: argparse.ArgumentParser, variable: str) -> None:
    """Add ``--password-file`` and ``--password``; ``variable`` is the one of the environment."""
    parser.add_argument(
        "--password-file", metavar="FILE", help="read the password from the first line of FILE; - is standard input"
    )
    parser.add_argument(
        "--password", metavar="PASSWORD", help="the password itself; others on this machine may see it while this runs"
    )
    parser.set_defaults(password_variable=variable, password_option="--password-file")
    parser.epilog = (
        f"Without these options the password comes from {variable} of the environment, else it is asked for."
    )


def add_new_password(parser: argparse.ArgumentParser) -> None:
    """Add ``--new-password-file``, for commands that log in with a password of their own."""
    parser.add_argument(
        "--new-password-file",
        metavar="FILE",
        help=f"read the user's new password from the first line of FILE; - is standard input (else {NEW_PASSWORD} of "
        "the environment, else it is asked for)",
    )


def has_new_password(args: argparse.Namespace) -> bool:
    """Is a new password given, so that nobody need be asked?"""
    return args.new_password_file is not None or NEW_PASSWORD in os.environ


def new_password_from(args: argparse.Namespace, prompt: str) -> str:
    """Return the new password; a prompt asks twice. Raises PasswordError if there is none, or an empty one."""
    given = argparse.Namespace(
        password=None,
        password_file=args.new_password_file,
        password_variable=NEW_PASSWORD,
        password_option="--new-password-file",
    )
    return password_from(given, prompt)


def has_password(args: argparse.Namespace) -> bool:
    """Is a password given, so that nobody need be asked?"""
    return args.password is not None or args.password_file is not None or args.password_variable in os.environ


def password_from(args: argparse.Namespace, prompt: str) -> str:
    """Return the password; a prompt asks twice for a new one. Raises PasswordError if there is none, or an empty
    one.
    """
    password = _given(args)
    if password is None:
        password = _asked(args, prompt)
    if not password:
        raise PasswordError("an empty password is refused")
    return password


def _given(args: argparse.Namespace) -> str | None:
    if args.password is not None:
        warn(
            "warning: a password in the arguments is seen by others on this machine, and kept in the shell's history; "
            f"prefer the prompt, --password-file or {args.password_variable}"
        )
        return str(args.password)
    if args.password_file is not None:
        return first_line(args.password_file, args.password_option)
    return os.environ.get(args.password_variable)


def first_line(name: str, option: str) -> str:
    """The first line of a file, ``-`` for standard input, which ``option`` names. Raises PasswordError."""
    try:
        if name == "-":
            line = sys.stdin.readline(_LENGTH_MAX)
        else:
            with open(name, encoding="utf-8") as file:
                line = file.readline(_LENGTH_MAX)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise PasswordError(f"{option} {name}: {reason}") from None
    return line.rstrip("\r\n")


def _asked(args: argparse.Namespace, prompt: str) -> str:
    if not sys.stdin.isatty():
        raise PasswordError(
            f"there is no password and nobody to ask: use {args.password_option}, or set {args.password_variable}"
        )
    try:
        password = getpass(f"{prompt}: ")
        if args.password_variable == NEW_PASSWORD and getpass("once more: ") != password:
            raise PasswordError("the two passwords differ; nothing was changed")
    except EOFError:
        raise PasswordError("no password was given; nothing was changed") from None
    return password
