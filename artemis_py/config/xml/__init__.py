"""From the text of a configuration file to a tree that is whole and valid."""
