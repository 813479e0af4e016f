"""Mode ``"arrow"``: windows of partitions, computed as jobs and read as Arrow record batches.

`subscription` drives one subscription, and its jobs, by the decisions of `reading_state`, and
`jvm_socket` reads what the JVM sends.
"""
