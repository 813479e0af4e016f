"""The protocol, without a network: bytes and deadlines in, bytes and events out.

`frames` and `codec` say what frames are and how they are written, `framing` and `fragments` how
they are cut, `metadata` what applications put beside their data. `connection` is one end of a
connection as a state machine; it stands on `intake` (bytes in), `session` (setup and end),
`requests`, `exchanges` and `books` (streams and their demand) and `outbound` (bytes out). Nothing
here knows an event loop.
"""
