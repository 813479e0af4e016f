"""One subscription: what happens between `subscribe` and the terminal signal.

`subscribing` checks a subscriber and creates an island for it. `lifecycle` is the table that
decides, `island` the driver that acts, in two forms: `sync_island` and `task_island`. `input_queue`
holds the elements that an upstream pushes.
"""
