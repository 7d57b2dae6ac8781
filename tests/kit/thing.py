"""Something to look after."""

from __future__ import annotations


class Thing:
    """Something that is noticed when it goes."""
