"""The retained log: segments and bodies that the broker no longer needs, kept for readers."""
