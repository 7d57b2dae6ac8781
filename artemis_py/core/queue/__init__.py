"""A queue, and the parts that it is composed of."""
