"""Streamed over RSocket."""
