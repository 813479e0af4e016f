"""Mode ``"arrow"``: windows of partitions, computed as jobs and read as Arrow record batches.

`subscription` drives one subscription by the decisions of `reading_state`; `partition_windows`
decides which partitions the next job computes, `window_jobs` makes the blocking calls,
`jvm_socket` reads what the JVM sends, and `decoder` makes elements of it.
"""
