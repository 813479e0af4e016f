"""The runner: finds the questions, measures them, and writes the results down."""
