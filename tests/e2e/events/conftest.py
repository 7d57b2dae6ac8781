"""A broker for each test."""

from __future__ import annotations

from functools import partial

from tests.e2e.management.told import ADDRESSES, operated
from tests.kit.process import configuration, for_each_test

told = for_each_test(partial(operated, configuration(addresses=ADDRESSES)))
"""A broker of its own."""
