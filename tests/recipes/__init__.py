"""Recipes and the service of examples/, with real servers."""
