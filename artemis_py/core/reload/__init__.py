"""Brings a running broker to another configuration."""
