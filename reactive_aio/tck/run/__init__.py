"""Running laws: one in a watched thread, all of a candidate, a candidate in its own process."""
