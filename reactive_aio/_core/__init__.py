"""The machinery under every flow. Pure but for ``loop``, which is the one door to asyncio."""
