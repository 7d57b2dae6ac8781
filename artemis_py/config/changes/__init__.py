"""What differs between two configurations, and when a running broker can use it."""
