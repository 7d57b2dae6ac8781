"""Spark itself: Java, sessions, and what a terminal shows of them."""
