"""Artemis' own console, which a user brings along: its files, its logins, and what it asks for beside Jolokia."""
