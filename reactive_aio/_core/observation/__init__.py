"""Observation: what the named flows of this process are doing.

`registry` knows their subscriptions, `figures` reads them. A subscription that runs is not slowed:
its loop keeps its counts anyway, and they are read where it is suspended.
"""
