"""docs/operators.md, the reference of all operators, and the generator that writes it.

    python -m publishing.reference    # runs every diagram and example; writes the page and pictures

`vocabulary` lists the operators; `diagram_runs`, `pictures` and `example_runs` make the parts of a
section from its docstring and its example; `needs` is the decision list, and `libraries` the index
of foreign names. Examples and needs are at the end of the test file of each module. A test fails
if the page is out of date.
"""
