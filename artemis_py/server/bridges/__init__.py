"""Bridges: they forward queues to other brokers, over STOMP."""
