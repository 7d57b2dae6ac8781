"""How our own programs reach a broker, over STOMP or HTTP: commands, the pipeline, traces, the broker for tests."""
