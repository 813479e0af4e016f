"""Tests of `reactive_aio.asgi`: responses and sockets."""
