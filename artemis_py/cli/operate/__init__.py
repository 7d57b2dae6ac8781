"""The commands that operate a running broker, made from the table of operations."""
