"""The reference and its generator."""
