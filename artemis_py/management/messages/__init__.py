"""Looking at messages, and choosing among them."""
