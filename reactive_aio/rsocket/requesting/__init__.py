"""This side's requests, and the local ends of streams as publishers and subscribers."""
