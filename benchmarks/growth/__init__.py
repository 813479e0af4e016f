"""Growth, as a ratio to the smallest size."""
