"""The text protocol: several streams on one WebSocket, as JSON (docs/protocol.md)."""
