"""Compiling: a chain of stages becomes one generated loop."""
