"""The bytes of every file: how they are laid out, and how to read them without changing them."""
