"""A broker for each test."""

from __future__ import annotations

from functools import partial

from tests.e2e.management.told import ADDRESSES, BRIDGE, SETTINGS, operated, stored
from tests.kit.process import SWEPT, configuration, for_each_test

told_to_store = for_each_test(lambda folder: operated(stored(folder, settings=SETTINGS), folder))
"""A broker of its own, with a journal."""


told = for_each_test(partial(operated, configuration(core=SWEPT + BRIDGE, addresses=ADDRESSES, settings=SETTINGS)))
"""A broker of its own."""
