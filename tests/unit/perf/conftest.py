"""The broker of the tests of the load generator."""

from __future__ import annotations

from tests.kit.fake_broker import FakeBroker
from tests.kit.process import for_each_test

broker = for_each_test(lambda _: FakeBroker())
