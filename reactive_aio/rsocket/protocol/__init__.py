"""The protocol, without I/O: bytes and deadlines in, bytes and events out.

`frames` and `codec` are the frames and their layout, `metadata` the extensions that applications
send beside their data. `connection` is one end of a connection; it composes a `frame_reader` (bytes
in), a `stream_machine` (requests, streams, their demand and their output), a `connection_state`
(stream 0) and a `fast_path`, which does the work of all three for the most common frames. Nothing
here knows an event loop.
"""
