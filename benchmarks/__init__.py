"""Costs, as ratios to a limit measured in the same run. See README.md."""
