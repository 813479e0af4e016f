"""What moves the bytes of a connection: sockets, byte streams of anyio, memory."""
