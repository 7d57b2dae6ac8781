"""A pair of files: users with their passwords, and the roles that they have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final


@final
@dataclass(frozen=True, slots=True)
class UserFiles:
    """A users file and a roles file; neither need exist."""

    users: Path
    roles: Path

    @property
    def are_there(self) -> bool:
        """Does the users file exist?"""
        return self.users.is_file()
