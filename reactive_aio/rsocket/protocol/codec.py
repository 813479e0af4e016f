"""Frames to bytes and back: what RSocket 1.0 says of layout, and nothing of what frames lead to.

`decode` takes a whole frame without its length, copies what it keeps, and either returns a frame,
or None for one that its sender allows to be passed over, or raises `ProtocolError`. `encode` is its
inverse; what does not fit its field is a `ValueError`.
"""

from .decoding import HEADER, decode, decode_body, header
from .encoding import add_length, encode, encode_payload

__all__ = ("HEADER", "add_length", "decode", "decode_body", "encode", "encode_payload", "header")
