"""Growth with the number of elements, sources, stages and timers."""
