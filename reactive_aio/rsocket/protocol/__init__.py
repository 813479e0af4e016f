"""The protocol, without I/O: bytes and deadlines in, bytes and events out.

`frames` and `codec` are the frames and their layout, `framing` and `fragmentation` their limits,
`metadata` the extensions that applications send beside their data. `connection` is one end of a
connection; it composes a `frame_reader` (bytes in), a `stream_machine` (streams, their demand and
their output), a `stream_opening` (requests), a `connection_state` (stream 0) and a `fast_path`.
Nothing here knows an event loop.
"""
