"""Tests of `reactive_aio.testing`."""
