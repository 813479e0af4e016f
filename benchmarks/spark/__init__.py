"""Read from Spark."""
