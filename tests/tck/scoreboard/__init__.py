"""The scoreboard: the kit's verdict on this library and on others, for docs/conformance.md."""
