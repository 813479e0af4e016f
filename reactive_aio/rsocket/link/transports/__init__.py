"""Transports: sockets, WebSockets, ASGI servers, byte streams of anyio, and memory."""
