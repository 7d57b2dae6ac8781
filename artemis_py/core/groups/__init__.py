"""Message groups: which group a message is in, and which consumer has which group."""
