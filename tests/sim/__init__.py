"""Simulated worlds: a broker on a disk that crashes, and what must be left of it afterwards."""
