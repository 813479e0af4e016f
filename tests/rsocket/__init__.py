"""Tests of the room reactive_aio/rsocket."""
