"""Which transcripts are about what falls into one turn, and what no turns of any size can change."""

from __future__ import annotations

import pytest

WHOLE_TURNS_ONLY = pytest.mark.parametrize("turns_of_any_size", ["whole turns"], indirect=True)
"""Of tests that say themselves how much a turn may do, or run none."""
ABOUT_ONE_TURN = frozenset(
    {"blocked_sender_leaves", "drop_in_the_turn_of_arrival", "one_turn_whole_life", "two_producers"}
)
"""Transcripts in which it shows what falls into one turn: who of two clients came first, whether a consumer was still
there, how often a sender that waits has tried.
"""
