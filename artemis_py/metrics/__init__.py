"""What Prometheus sees: Artemis' metric names over plain ints, read when somebody asks, not while messages flow."""

from __future__ import annotations

from artemis_py.metrics.exporter import MetricsExporter

__all__ = ["MetricsExporter"]
