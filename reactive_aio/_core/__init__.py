"""The machinery of every flow. `loop` is its only module that imports asyncio."""
