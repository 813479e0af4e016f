"""Emitted into a processor."""
