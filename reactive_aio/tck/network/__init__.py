"""The network kit: judges an RSocket 1.0 server by what it sends and how it reacts, byte by byte.

It reads and writes frames by its own codec (`frames`), written from the protocol's text. It shares
no code with `reactive_aio.rsocket`, so that a mistake in one is detected by the other.
"""
