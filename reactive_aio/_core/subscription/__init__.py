"""One subscription: its life as a table, and the islands that run it."""
