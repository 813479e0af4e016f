"""The laws, applied to every source, operator, sink and processor of the library."""
