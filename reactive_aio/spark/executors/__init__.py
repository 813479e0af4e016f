"""Flows in Spark's Python workers: `map_flow` and `for_each_partition`.

On the driver, `map_flow` pickles a function of a flow (`shipping`) and gives Spark a function of
Arrow batches. Spark calls that in a Python worker, once for each partition, on the worker's main
thread: `partition_run`. The flow runs on the event loop of the worker (`worker_loop`), which has a
thread of its own and outlives the task. The main thread reads the batches that the flow requests
(`spark_connection`, `input_rows`) and sends those that it fills, while the loop goes on;
`conversion` makes them of rows.
"""
