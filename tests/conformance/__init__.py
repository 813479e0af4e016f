"""The laws on every source, operator and processor; and the laws themselves on trial."""
