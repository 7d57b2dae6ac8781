"""From broker.xml to typed settings: :func:`artemis_py.config.reader.load`."""
