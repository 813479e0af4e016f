"""Deliveries: what is acknowledged, when, and what the end of a flow gives back."""
