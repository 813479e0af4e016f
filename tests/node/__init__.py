"""npm packages that the tests talk with."""
