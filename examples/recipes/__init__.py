"""Recipes: sources and sinks of common servers, each a module to copy into a service."""
