"""Random pipelines of the whole vocabulary, with a plain-Python model of each of their parts.

`operators`, `sources` and `sinks` are tables: a name, the text of a call, and its effect on the
expected elements; `identities` has a row for each operator that `operators` leaves out.
`pipeline` draws parts from them and writes a program; `run` has the functions that the program
calls, and `check` runs it.
"""
