"""The properties that are laid over what the file says."""
