"""What every test runs in: which loops, no blocking calls, nothing left behind."""
