"""Message groups: which group a message is in, and which consumer owns which group."""
