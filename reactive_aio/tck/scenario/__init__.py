"""What a scenario works with: its context, recording subscribers, and publishers that it drives."""
