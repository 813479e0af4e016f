"""Compiling: a chain of stages becomes one generated loop.

`inline` is the text that one operator contributes; `chain` describes an island: what feeds it, and
its stages. `loops` writes the text of all stages into the loop for that kind of feed.
`end_hooks` are the callbacks of stages that observe how the flow ends.
"""
