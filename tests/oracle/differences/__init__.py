"""The departures from Artemis, and the document that lists them."""
