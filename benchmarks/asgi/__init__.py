"""Served over HTTP and WebSocket."""
