"""From the name of a destination to its address and queue, and how these are created and deleted."""
