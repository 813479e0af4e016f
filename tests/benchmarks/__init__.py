"""Every benchmark runs, the runner is right, and the pages are what it wrote."""
