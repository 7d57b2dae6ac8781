"""The configuration of a running broker: it is watched, read again, compared and brought into force."""
