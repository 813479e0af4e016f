"""Tests of reactive_aio: one folder per room of the package, and `house` for the house itself."""
