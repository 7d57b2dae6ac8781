"""The table: every scenario, and the processes that they share."""
