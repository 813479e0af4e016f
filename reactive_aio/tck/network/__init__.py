"""The kit's network part: is a peer's RSocket 1.0 what the protocol says, byte by byte?

It speaks the wire by a codec of its own (`frames`), written against the protocol's text and sharing
nothing with `reactive_aio.rsocket`: what both write alike, two readings of the text have agreed on.
"""
