"""A model of the whole vocabulary, random pipelines of it, their consumers, and one judge.

`operators`, `sources` and `consumers` are the registry: a name, the text of a call, and on lists of
values what it makes of them. `pipeline` draws parts of them and writes a program; `run` has the
functions that the program calls; `judge` runs it, and checks all that must be true of every one.
`shrink` looks for a smaller program that fails as well.
"""
