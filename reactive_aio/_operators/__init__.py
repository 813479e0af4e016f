"""Operators: one function each, in families, bound to `Flow` in ``flow``."""
