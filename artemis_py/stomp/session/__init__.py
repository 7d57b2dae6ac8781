"""A session and its parts."""
