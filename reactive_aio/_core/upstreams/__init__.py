"""Several upstreams: operators that combine publishers, hold a queue or run a timer.

`inner_subscriber` is one upstream, with the guards of a subscriber. `coordinator` is the base of
every such operator: `forwarding` has one upstream, `sequential` one after another, `merging`
several at once, and `worker_pool` several tasks.
"""
