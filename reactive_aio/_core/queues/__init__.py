"""Bounded queues, and the accounts of operators that hold elements."""
