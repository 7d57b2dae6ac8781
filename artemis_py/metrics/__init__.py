"""The Prometheus metrics: Artemis' metric names over plain ints, read on a scrape and not while messages flow."""

from __future__ import annotations

from artemis_py.metrics.exporter import MetricsExporter

__all__ = ["MetricsExporter"]
