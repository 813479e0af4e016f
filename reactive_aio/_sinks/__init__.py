"""Sinks: ``async for``, and the awaitable terminal operators."""
