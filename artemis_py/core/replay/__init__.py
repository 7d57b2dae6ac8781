"""Replays: consumers of the log, who take nothing from any queue."""
