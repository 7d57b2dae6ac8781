"""From broker.xml to typed settings."""
