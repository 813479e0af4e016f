"""The environment of every test: its loops, and checks of blocking calls and of leftovers."""
