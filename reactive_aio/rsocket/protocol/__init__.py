"""The protocol, without I/O: bytes and deadlines in, bytes and events out.

`frames` and `codec` are the frames and their layout, `metadata` the extensions that applications
send beside their data. A `Connection` is one end of a connection: a `stream_machine` (requests,
streams, their demand and their output), to which it adds the frames of stream 0, deadlines and its
transport. A `frame_reader` takes frames out of bytes, and `runs` reads those of the most common
kinds many at a time. Nothing here knows an event loop.
"""
