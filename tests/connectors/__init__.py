"""Connectors, with real servers."""
