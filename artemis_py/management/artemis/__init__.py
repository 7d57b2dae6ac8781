"""The broker as Artemis' tools see it: beans with names, attributes and operations with signatures."""
