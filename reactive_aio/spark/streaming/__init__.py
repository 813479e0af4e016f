"""Streaming queries as flows: micro-batches, and their rows, under demand."""
