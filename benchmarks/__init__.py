"""What things cost, as ratios to the limit measured in the same run. See README.md."""
