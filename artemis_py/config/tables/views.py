"""A view: a queue that gets the messages of other addresses than its own (``underlying-address``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex, is_wildcard


@final
@dataclass(frozen=True, slots=True)
class View:
    """What a view reads, and where its senders' messages go.

    ``underlying`` are the addresses, each exact or a wildcard. ``target`` is the one on which messages are published
    that were sent to the queue's own address; "": none is known.
    """

    underlying: tuple[str, ...]
    target: str

    def covers(self, address: str, syntax: WildcardSyntax) -> bool:
        """Does the view get what is sent to this address?"""
        index = WildcardIndex(syntax)
        for pattern in self.underlying:
            index.add(pattern)
        return len(index.matching(address)) > 0


def addresses_in(text: str | None) -> tuple[str, ...]:
    """The addresses in a comma-separated list, each once, without blanks around them."""
    return tuple(dict.fromkeys(name for part in (text or "").split(",") if (name := part.strip())))


def view_of(underlying: str | None, target: str | None, address: str) -> View | None:
    """The view that a queue on ``address`` is, with these attributes. None: it is none; a queue over nothing but its
    own address gets what it gets anyway.
    """
    names = addresses_in(underlying)
    if not names or names == (address,):
        return None
    chosen = (target or "").strip()
    return View(names, chosen or (names[0] if len(names) == 1 else ""))


def is_published_to(view: View, address: str, syntax: WildcardSyntax) -> bool:
    """May ``address`` be where the messages of the view's senders go: is it one of the underlying ones, and no
    wildcard?
    """
    return not is_wildcard(address, syntax) and view.covers(address, syntax)
