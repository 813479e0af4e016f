"""Drawings of flows: their islands and what is between them, with the figures of what runs.

`model` reads a flow and its subscriptions; `svg` and `mermaid` draw what it has found, and
`pictures` is what `Flow.graph` returns.
"""
