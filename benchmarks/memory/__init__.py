"""Memory of an idle subscription."""
