"""Queues and accounts: what holds elements, and what decides how many.

Pure: `bounded_queue`, `merge_accounting`, `reorder_buffer`, `batch_timer`, `recent`. On a loop:
`output_buffer`, the subscription of a source that emits without demand, `shared_room`, what several
of them have room for, and `hot_emitter`, the producers' side of a hot source.
"""
