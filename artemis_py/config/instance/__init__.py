"""An Artemis instance directory: what stands around its broker.xml."""
