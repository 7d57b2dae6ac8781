"""The pages of an address, and what one queue has in them."""
