"""``python -m reactive_aio``."""
