"""Logins: verified in threads, remembered for a while, slowed down after failures."""
