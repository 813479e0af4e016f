"""One connection on the event loop: its transport, the clock, connecting and reconnecting."""
