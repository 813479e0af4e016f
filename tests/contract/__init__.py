"""The contract of signals, promise by promise."""
