"""Received by a subscriber."""
