"""What other libraries call the options of a function, for errors about an unknown keyword."""

from collections.abc import Collection
from typing import Final

__all__ = ("FOREIGN_OPTIONS", "in_snake_case", "option_here")

FOREIGN_OPTIONS: Final = {
    # functions and values
    "mapper": "callback f fn func function project selector transform transformer",
    "predicate": "cond condition f filter fn func function pred stop_predicate test where",
    "accumulator": "f fn func function mapper operator reducer",
    "reducer": "accumulator f fn func function operator",
    "callback": "action consumer f fn func function handler mapper observer on_next",
    "function": "action callback consumer f fn func handler mapper on_next supplier target",
    "factory": "f fn func function supplier",
    "key": "comparer key_fn key_func key_mapper key_selector keyfunc partition_key",
    "seed": "identity init initial initial_value initializer start",
    "default": "default_value fallback value",
    "element": "default default_value value",
    "value": "default default_value element item",
    "initial": "initial_state initial_value seed start value",
    "iterable": "data elements it items sequence values xs",
    "path": "file filename",
    # how many
    "concurrency": (
        "concurrent jobs limit max_concurrency max_concurrent max_in_flight max_tasks "
        "max_workers maxsize n_jobs parallel parallelism pool_size task_limit workers"
    ),
    "prefetch": (
        "batch_size buffer buffer_size capacity initial_request_n limit_count limit_rate "
        "max_buffer_size maxsize queue_size"
    ),
    "capacity": (
        "backlog buffer buffer_size bufsize extra_buffer_capacity limit max_buffer_size "
        "max_size maxlen maxsize queue_size size"
    ),
    "size": (
        "batch_size buffer_size chunk_size chunksize count length max_size maxsize n window_size"
    ),
    "chunk": "batch_size chunk_size chunksize",
    "step": "advance every shift skip stride",
    "count": (
        "amount batch batch_size block_size fetch fetch_size limit max_poll_records max_records "
        "n num number prefetch size"
    ),
    "index": "at n nth position",
    "times": "count n num repeat_count repeats",
    "n": (
        "buffer_size calls capacity count elements limit max_concurrency max_rate maxsize "
        "permits rate replay replay_size size tokens total_tokens value"
    ),
    "limit": (
        "max_ack_pending max_bytes max_in_flight max_items max_length max_line_length "
        "max_pending max_records max_size max_unacked maxlen maxsize n prefetch prefetch_count "
        "qos receive_maximum size"
    ),
    "max_groups": "breadth groups limit max_keys max_size maxsize",
    "max_keys": "limit max_size maxsize",
    "workers": "max_workers n_jobs processes",
    "ahead": "buffer_size max_buffer_size prefetch window",
    "high": "high_tide prefetch prefetch_rate",
    "low": "low_tide",
    # time
    "by": "delay delay_time due_time duetime duration interval period seconds timespan wait",
    "delay": (
        "backoff base_delay by due_time duetime duration first_backoff initial_delay interval "
        "min_backoff seconds sleep start wait wait_fixed"
    ),
    "period": "delay every interval seconds tick timespan",
    "initial_delay": "delay due_time duetime start",
    "quiet": "delay due_time duetime duration idle interval quiet_period seconds timeout wait",
    "every": "commit_every delay duration interval max_records period sampler seconds timespan",
    "per": (
        "delay duration every interval period seconds time time_period timespan window "
        "window_duration"
    ),
    "duration": "delay every interval max_time max_wait period seconds span time timeout timespan",
    "each": "due_time duetime duration idle interval seconds timeout",
    "total": "deadline max_time overall",
    "first": "initial",
    "timeout": (
        "connect_timeout deadline max_time open_timeout per_attempt read_timeout "
        "request_timeout response_timeout seconds time_limit timeout_ms timeout_seconds"
    ),
    "ttl": "expire expires_in max_age seconds window",
    "idle": "duration idle_timeout min_idle_time timeout ttl visibility_timeout",
    "moment": "notifier other publisher until",
    # failures
    "retry": (
        "attempts max_attempts max_reconnect_attempts max_retries policy reconnect reconnection "
        "retries retry_count retry_limit retry_policy tries"
    ),
    "policy": (
        "attempts count max_attempts max_retries n num_retries retries retry retry_count "
        "retry_policy times tries"
    ),
    "attempts": (
        "count max_attempts max_deliver max_deliveries max_retries max_tries n num_retries "
        "retries retry_count stop stop_max_attempt_number times tries"
    ),
    "factor": "backoff_factor base exp_base exponential_base multiplier",
    "maximum": "cap max max_backoff max_concurrency max_delay max_limit max_value max_wait",
    "minimum": "min min_limit min_value",
    "within": (
        "auto_commit_interval commit_interval deadline interval linger max_delay max_elapsed "
        "max_elapsed_time max_time max_wait"
    ),
    "only": (
        "error error_type errors exception exception_type exception_types exceptions on retry "
        "retry_for retry_on types"
    ),
    "on_error": "error_handler error_strategy errors handle_error on_exception return_exceptions",
    "fallback": "handler other resume",
    "failures": "fail_max failure_threshold max_failures threshold",
    "reset": "cooldown recovery_timeout reset_timeout timeout",
    # order, and what does not fit
    "ordered": "in_order keep_order order preserve_order",
    "overflow": (
        "backpressure backpressure_strategy mode on_buffer_overflow on_overflow "
        "overflow_strategy policy strategy"
    ),
    "on_drop": "on_dropped on_overflow on_undelivered_element",
    "limiter": (
        "capacity_limiter limit limits rate_limit rate_limiter sem semaphore throttle throttler"
    ),
    "pool": "executor limiter process_pool thread_pool",
    # brokers and databases
    "group": (
        "consumer_group durable durable_name group_id group_name groupname queue_group share_name"
    ),
    "on_dead_letter": "dead_letter dead_letter_handler on_failure on_giveup",
    "dead_letters": "dead_letter dead_letter_queue dlq",
    "ack_wait": "ack_deadline ack_timeout visibility_timeout",
    "subject": "channel subjects topic",
    "queue": "queue_name topic",
    "stream": "key stream_name topic",
    "topic": "channel queue subject topic_name",
    "to": "queue routing_key topic",
    "table": "name table_name tablename",
    "query": "sql statement",
    "channel": "topic",
    "maxlen": "max_len max_length max_size maxsize",
    "poll": "interval poll_interval polling_interval",
    "lease": "lock_timeout visibility_timeout",
    "session": "expiry session_expiry",
    "name": (
        "app_name client_id client_name consumer consumer_id consumer_name consumername "
        "identifier title"
    ),
    # HTTP, WebSocket and RSocket
    "url": (
        "address amqp_url bootstrap_servers brokers connection_string dsn endpoint host href "
        "server servers uri"
    ),
    "uri": "address bind endpoint host listen url",
    "where": "address endpoint host transport uri url",
    "route": "name path routing_key",
    "payload": "body content data json message params",
    "router": "app handler handlers responder routes",
    "routes": "handlers router",
    "codec": "data_encoding encoder encoding format mime serializer",
    "encode": "dumps encoder json_encoder serialize serializer to_json",
    "event": "event_name event_type name type",
    "last_event_id": "event_id last_id",
    "headers": "additional_headers extra_headers",
    "subprotocols": "protocol protocols subprotocol",
    "ssl": "cert context ssl_context sslcontext tls tls_context verify",
    "origins": "allow_origins allowed_origins cors_allowed_origins cors_origins",
    "authenticate": "auth auth_handler authentication authenticator authorization",
    "credentials": "auth authentication authorization password token username",
    "interceptors": "interceptor middleware middlewares",
    "heartbeat": "keep_alive keepalive ping ping_interval",
    "keepalive": "heartbeat keep_alive keep_alive_interval keep_alive_period ping_interval",
    "lifetime": "keep_alive_max_lifetime max_lifetime max_lifetime_period",
    "send_timeout": "timeout timeout_seconds write_timeout",
    "grace": "drain_timeout graceful_timeout shutdown_timeout timeout_graceful_shutdown",
    "max_message": "max_bytes max_message_size max_msg_size max_size ws_max_size",
    "max_payload": "max_message_size max_payload_size max_size",
    "max_streams": (
        "concurrency limit limit_concurrency max_clients max_connections max_subscriptions"
    ),
    "max_sockets": "limit limit_concurrency max_clients max_connections",
    "max_connections": "backlog limit limit_concurrency max_clients",
    "max_per_client": "limit_per_client per_client per_host",
    "expose_errors": "debug show_errors",
    "resume": "resumable resume_enabled resumption",
    "max_store": "buffer_size max_buffer_size",
    "token": "password secret",
    # Spark
    "df": "data_frame dataframe frame",
    "rows": "as_rows format kind output",
    "batch": "batch_size chunk_size chunksize fetch_size fetchsize max_records",
    "checkpoint": "checkpoint_dir checkpoint_location checkpoint_path",
    "trigger": "batch_duration interval processing_time",
    "output_mode": "mode",
    "mode": "save_mode",
    "window": "buffer_size prefetch prefetch_partitions",
    "cores": "master n_jobs parallelism threads workers",
    "config": "conf options",
    "partition_by": "partition_cols partitions",
    "schema": "columns dtypes fields types",
    "pipeline": "f fn func function transform",
}
"""What a parameter is called elsewhere, in snake case; a function has few of these parameters."""


def in_snake_case(name: str) -> str:
    """*name*, which may be in camel case, as Python writes it."""
    return "".join("_" + each.lower() if each.isupper() else each for each in name)


def option_here(given: str, own: Collection[str]) -> str | None:
    """Which of a function's *own* options is meant by *given*: misspelt, or named as elsewhere."""
    from difflib import get_close_matches  # looked for only after a mistake

    snake = in_snake_case(given)
    misspelt = get_close_matches(snake, own, 1, 0.8)
    elsewhere = [name for name in own if snake in FOREIGN_OPTIONS.get(name, "").split()]
    return next(iter(misspelt or elsewhere or get_close_matches(snake, own, 1)), None)
