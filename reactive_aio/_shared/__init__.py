"""What sources, operators and sinks share.

`coerce` makes a flow of whatever an operator accepts as a source, `element_work` runs a function of
the user on one element with its retries and limits, `framing` divides bytes into lines and other
frames, and `foreign_names` knows what other libraries call an operator.
"""
