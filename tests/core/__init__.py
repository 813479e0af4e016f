"""The pure parts of the core, and what stands on them."""
