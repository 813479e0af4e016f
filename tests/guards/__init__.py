"""Every decision of the engine is taken away once, and a test has to notice."""
