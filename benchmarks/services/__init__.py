"""Whole services."""
