"""Several upstreams: operators that combine publishers, hold a queue or run a timer.

`inner_subscriber` is one upstream, with the guards of a subscriber. `coordinator` is the base of
every such operator: in `sequential` they have one upstream at a time, in `merging` several at once,
in `worker_pool` several tasks, and in `splitting` one upstream and several flows that it is split
into.
"""
