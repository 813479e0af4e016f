"""What each way costs, as a ratio to hand-written code in the same run. See README.md."""
