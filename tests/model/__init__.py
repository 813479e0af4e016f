"""The model of the whole vocabulary: its rows, and random pipelines of them.

`operators` and `sources` are the registry: a name, the text of a call, and on lists of values what
it makes of them; the consumers are those of the kit. `vocabulary` gives them to the generator and
the judge of `reactive_aio.tck.model`. `times` says when operators with a clock emit what.
"""
