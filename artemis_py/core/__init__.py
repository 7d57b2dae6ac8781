"""The broker's state machine: no I/O, no clock, no threads, no ``async``. Time is an argument."""
