"""Which web pages of other hosts may use Jolokia: what ``jolokia-access.xml`` of an Artemis instance says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from artemis_py.config.tables.entities import NOWHERE, Origin


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """``allow-origin`` in lower case, in which ``*`` stands for any text, and whether there is ``strict-checking``."""

    origins: tuple[str, ...] = ()
    is_strict: bool = False
    origin: Origin = NOWHERE
