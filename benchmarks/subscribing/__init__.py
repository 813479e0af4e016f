"""Short subscriptions, and single requests."""
