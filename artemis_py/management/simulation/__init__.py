"""What a configuration would do under a load: arithmetic over its settings, without a broker."""
