"""What a law's scenario works with: the trial, its recorders, its upstream."""
