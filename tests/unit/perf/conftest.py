"""The broker of the tests of the load generator."""

from __future__ import annotations

from tests.kit.process import for_each_test
from tests.unit.perf.fake_broker import FakeBroker

broker = for_each_test(lambda _: FakeBroker())
