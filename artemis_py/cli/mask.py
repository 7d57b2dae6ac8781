"""``artemis-py mask``: the hash of a password, for a users file."""

from __future__ import annotations

import argparse
from typing import Final

from artemis_py.cli.password_input import add_password, password_from
from artemis_py.errors import AdviceError
from artemis_py.security.users.accounts import NEW_PASSWORD
from artemis_py.security.users.passwords import hashed
from artemis_py.terminal_output import say

HELP: Final = "print the hash of a password, for a users file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--hash``, and where the password comes from."""
    parser.add_argument("--hash", action="store_true", help="print ENC(…) for a users file; it cannot be reversed")
    add_password(parser, NEW_PASSWORD)


def run(args: argparse.Namespace) -> int:
    """Prints the hash. Without ``--hash`` raises AdviceError: anybody could read what Artemis would print."""
    if not args.hash:
        raise AdviceError(
            "without --hash nothing is masked: Artemis' two-way codec does not hide a password, because each "
            "copy of Artemis has its key. This broker reads such ENC(…) in a configuration, but writes none",
            "For a users file:  artemis-py mask --hash\n"
            "To keep another password out of broker.xml, write  ${NAME}  for it: the environment variable NAME "
            "replaces it at the start",
        )
    say(str(hashed(password_from(args, "password"))))
    return 0
