"""Where the users and roles of a configuration are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from artemis_py.config.read.server import ROLES_FILE, USERS_FILE
from artemis_py.config.settings import BrokerConfig


@final
@dataclass(frozen=True, slots=True)
class UserFiles:
    """A users file and a roles file; neither need exist."""

    users: Path
    roles: Path

    @property
    def are_there(self) -> bool:
        """Does the users file exist?"""
        return os.path.isfile(self.users)


def files_of(config: BrokerConfig) -> UserFiles:
    """Return the files that ``users-file`` names, else those beside broker.xml; relative to its folder."""
    folder = Path(config.file).parent
    named = config.users_file
    if named is None:
        return files_in(folder)
    return UserFiles(folder / named.users, folder / named.roles)


def files_in(folder: Path) -> UserFiles:
    """Return the files in a folder by the names that an instance of Artemis has."""
    return UserFiles(folder / USERS_FILE, folder / ROLES_FILE)
