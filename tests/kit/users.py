"""Users of brokers under test: in the files beside a broker.xml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artemis_py.security.users.accounts import Accounts, UserFiles
from artemis_py.security.users.passwords import hashed

CHEAP = 1024
"""Iterations of a hash, as Artemis writes it: a test logs in often."""


def give_user(folder: Path, user: str, password: str, roles: Sequence[str] = ("amq",)) -> None:
    """Add a user to the files in this folder."""
    files = UserFiles(folder / "artemis-users.properties", folder / "artemis-roles.properties")
    Accounts(files).add(user, str(hashed(password, CHEAP)), roles)
