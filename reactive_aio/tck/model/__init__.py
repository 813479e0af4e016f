"""A model of flows: random pipelines, their consumers, and one judge.

A `vocabulary` has rows: a name, the text of a call, and on lists of values what it makes of them.
`pipeline` draws rows and writes a program; `run` has the functions that the program calls; `judge`
runs it, and checks all that must be true of every one; `shrink` looks for a smaller program that
fails as well. `operators` puts an operator of a user between the rows of `neighbours`.

The programs are texts: they import the package when they run, and the kit itself does not.
"""
