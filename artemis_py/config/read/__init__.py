"""From the elements of the tree to a draft of the configuration."""
