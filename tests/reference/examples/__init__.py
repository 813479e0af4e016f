"""An example of each operator, in a module named after the one that defines it.

The body of a function is the example of the operator of that name. docs/operators.md shows it with
the imports that it needs, and with what it prints; so an example is complete in itself, takes
waits of at most half a second, and prints the same each time.
"""
