"""Read by `async for`."""
