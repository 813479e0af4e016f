"""Servers with thousands of connections, and the raw clients at the other ends.

This is not a family: the questions are in `asgi` and `rsocket`, one for each measurement.
"""
