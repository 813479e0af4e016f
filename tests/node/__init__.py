"""npm packages that the tests use."""
