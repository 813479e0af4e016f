"""The peer's requests: routes, handlers, and what they may cost."""
