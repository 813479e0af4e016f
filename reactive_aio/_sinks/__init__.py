"""Where elements end: ``async for``, and the awaitable terminal operators."""
