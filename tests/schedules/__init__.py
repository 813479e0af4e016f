"""The library under every legal order: what combines, queues, or is called from threads."""
