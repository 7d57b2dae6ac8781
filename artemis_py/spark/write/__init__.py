"""From rows to messages that a broker has confirmed."""
