"""The scoreboard: the kit's verdicts on this library and on others, for docs/conformance.md."""
