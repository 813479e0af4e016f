"""The guards of the contract of signals, by name: what stands there, and what takes its place."""

from typing import Final, NamedTuple

from tests.guards.changes import Change


class Guard(NamedTuple):
    """One guard, and how it is taken away."""

    name: str
    file: str
    function: str
    there: str
    instead: str
    number: int = 1

    @property
    def change(self) -> Change:
        return Change(*self[1:])


CORE: Final = "reactive_aio/_core/"
ISLAND: Final = CORE + "subscription/island.py"
SYNC_ISLAND: Final = CORE + "subscription/sync_island.py"
TASK_ISLAND: Final = CORE + "subscription/task_island.py"
INNER: Final = CORE + "upstreams/inner_subscriber.py"
LOOPS: Final = CORE + "compiler/loops.py"
INPUT: Final = CORE + "subscription/input_queue.py"

GUARDS: Final = (
    # -- demand
    Guard(
        "1.1 an island delivers no more than its limit",
        LOOPS,
        "_Writer._counted",
        "[*self._wait(), enough]",
        "[enough]",
    ),
    Guard(
        "1.1 an input queue accepts no more than it requested",
        INPUT,
        "InputQueue._accepts",
        "self.outstanding < 0",
        "False",
    ),
    Guard(
        "1.1 an inner subscriber accepts no more than it requested",
        INNER,
        "InnerSubscriber.on_next",
        "len(self.elements) < self.outstanding",
        "True",
    ),
    Guard(
        "1.1 a batch that is not counted fits into the demand",
        LOOPS,
        "",
        "'size = batch if counted or batch < room else room - 1'",
        "'size = batch'",
    ),
    Guard("3.8 requests add up", ISLAND, "Island.request", "self.limit += n", "self.limit = n"),
    Guard(
        "3.8 the check after the drain has paused",
        ISLAND,
        "Island._enter",
        "if self._is_ready():\n    self._enter(_WAKE)",
        "pass",
    ),
    Guard(
        "3.8 the check after a synchronous drain has paused",
        SYNC_ISLAND,
        "SyncIsland._must_go_on",
        "if not self._is_ready():\n    return False",
        "return False",
    ),
    Guard(
        "3.13 a generator is closed before its flow is completed",
        SYNC_ISLAND,
        "SyncIsland._terminate",
        "not isinstance(source, CLOSABLE)",
        "True",
    ),
    Guard(
        "3.13 upstream is released before a flow is completed",
        SYNC_ISLAND,
        "SyncIsland._terminate",
        "self.input_queue is None",
        "True",
    ),
    Guard(
        "discards: a source receives the function that its elements are given back to",
        SYNC_ISLAND,
        "SyncIsland._on_subscribed",
        "self.discards is not None",
        "False",
    ),
    Guard(
        "3.8 the check after a resumed drain has paused",
        SYNC_ISLAND,
        "SyncIsland.resume",
        "self.limit <= self.emitted",
        "True",
    ),
    Guard(
        "3.8 what is requested while an element is processed",
        SYNC_ISLAND,
        "SyncIsland.resume",
        "self.limit is self.requested_limit",
        "True",
    ),
    Guard(
        "3.8 what a stage drops is requested again",
        SYNC_ISLAND,
        "SyncIsland.resume",
        "queue.outstanding >= self.needed_from_upstream",
        "True",
    ),
    Guard(
        "3.8 demand that arrives during the request to upstream",
        ISLAND,
        "Island._is_ready",
        "bool(has_news) or self.limit != self.requested_limit",
        "bool(has_news)",
    ),
    Guard(
        "3.9 a request is checked",
        ISLAND,
        "Island.request",
        "n.__class__ is not int or n < 1",
        "False",
    ),
    Guard(
        "3.9 it is answered once, and not after a cancellation",
        ISLAND,
        "Island._fail",
        "not self.is_stopped",
        "True",
    ),
    Guard(
        "3.9 the answer waits for the current signal",
        SYNC_ISLAND,
        "SyncIsland._interrupt",
        "self.is_suspended and (not self.is_fault)",
        "self.is_suspended",
    ),
    Guard(
        "3.9 a bool is not a number of elements",
        CORE + "demand.py",
        "require_demand",
        "isinstance(n, bool)",
        "False",
    ),
    Guard(
        "3.17 demand saturates",
        CORE + "demand.py",
        "Demand.add",
        "self.outstanding = min(self.outstanding + n, UNBOUNDED)",
        "self.outstanding += n",
    ),
    # -- one signal at a time
    Guard(
        "1.3 the awaitable that on_next returned is awaited",
        LOOPS,
        "",
        "'if r is not None and S.must_await(r): yield AWAIT_SIGNAL'",
        "'pass'",
    ),
    Guard(
        "1.3 the same in a task", LOOPS, "", "'if r is not None: await S.await_signal(r)'", "'pass'"
    ),
    Guard(
        "1.3 the awaitable that on_subscribe returned is awaited",
        ISLAND,
        "Island.begin",
        "signalled is not None and self.must_await(signalled)",
        "False",
    ),
    Guard(
        "1.3 no signal before on_subscribe has returned",
        CORE + "subscription/lifecycle.py",
        "",
        "(P.OPENING, A.NOTHING)",
        "(P.DRAINING, A.DRAIN)",
        2,
    ),
    Guard(
        "3.3 a request while draining is an addition",
        CORE + "subscription/lifecycle.py",
        "",
        "A.NOTHING",
        "A.DRAIN",
        7,
    ),
    Guard(
        "3.3 a request wakes an idle flow only",
        ISLAND,
        "Island.request",
        "self.phase is _IDLE",
        "True",
    ),
    Guard("3.3 deep chains do not exhaust the stack", CORE + "loop.py", "", "24", "10 ** 9"),
    Guard(
        "1.3 the trampoline has one worker",
        CORE + "trampoline.py",
        "Trampoline.offer",
        "if self.state is ExecutorState.RUNNING:\n    return False",
        "pass",
    ),
    # -- the end
    Guard(
        "1.7 one terminal signal",
        CORE + "subscription/lifecycle.py",
        "",
        "A.NOTHING",
        "A.TERMINATE",
        12,
    ),
    Guard(
        "1.4 an error of upstream passes through the loop unchanged",
        INPUT,
        "InputQueue.take",
        "UpstreamFailed(error)",
        "error",
    ),
    Guard(
        "1.4 an exception that cannot be annotated",
        CORE + "compiler/error_notes.py",
        "annotate",
        "suppress(Exception)",
        "suppress()",
    ),
    Guard(
        "1.5 a stage that still emits for its element",
        LOOPS,
        "",
        "'S.emitted = emitted\\n    yield MID_ELEMENT'",
        "'S.emitted = emitted\\n    if S.is_source_spent(): raise Done\\n    yield NO_DEMAND'",
    ),
    Guard(
        "1.5 the same in a task",
        TASK_ISLAND,
        "TaskIsland.wait_for_demand",
        "not within and self.is_source_spent()",
        "self.is_source_spent()",
    ),
    Guard(
        "1.4 None is not an element", LOOPS, "_Writer._refusing_none", "self.shape.checked", "True"
    ),
    # -- cancellation
    Guard("1.8 the flag after each delivery", LOOPS, "", "_ALIVE", "''", 2),
    Guard(
        "1.8 a stage that swallows its cancellation",
        LOOPS,
        "_Writer._let_go_if_stopped",
        "[_ALIVE]",
        "[]",
    ),
    Guard(
        "1.8 an answer to a wrong request is silenced by cancel",
        ISLAND,
        "Island.cancel",
        "self.limit, self.is_fault = _NEVER, False",
        "self.limit = _NEVER",
    ),
    Guard(
        "3.5 cancel from another thread",
        ISLAND,
        "Island.cancel",
        "self.loop_handle.call_soon_threadsafe(self.cancel)",
        "pass",
    ),
    Guard(
        "3.12 a suspended drain ends at once",
        SYNC_ISLAND,
        "SyncIsland._interrupt",
        "if self.is_suspended and (not self.is_fault):\n    self._enter(Input.FINISHED)",
        "pass",
    ),
    Guard(
        "3.12 upstream is cancelled while a task unwinds",
        TASK_ISLAND,
        "TaskIsland._interrupt",
        "self._close_source()",
        "pass",
    ),
    Guard(
        "3.12 cancel ends what a stage awaits",
        TASK_ISLAND,
        "TaskIsland._interrupt",
        "cancel_task(self.task)",
        "pass",
    ),
    Guard(
        "3.12 but not a suspended on_next",
        TASK_ISLAND,
        "TaskIsland._interrupt",
        "self.loop_handle.is_closed or not self.is_signalling",
        "True",
    ),
    Guard(
        "3.13 the reference to the subscriber is dropped",
        ISLAND,
        "Island._release",
        "self.subscriber = self.flush_batch = None",
        "pass",
    ),
    Guard(
        "3.13 the reference to a subscriber that is completed at once is dropped",
        SYNC_ISLAND,
        "SyncIsland._complete",
        "self.subscriber = self.flush_batch = self.source = self.drain = self.send = None",
        "pass",
    ),
    Guard("3.13 the source is closed", ISLAND, "Island._close_source", "source.close()", "pass"),
    Guard(
        "3.13 upstream is cancelled",
        INPUT,
        "InputQueue.close",
        "upstream is not None and is_live",
        "False",
    ),
    Guard(
        "3.15 an error in the source's cleanup",
        ISLAND,
        "Island._close_source",
        "self._report_dropped(error)",
        "raise",
    ),
    Guard(
        "3.16 upstream raises in request",
        ISLAND,
        "Island._upstream_raised",
        "queue.upstream_raised(as_failure(error))",
        "raise error",
    ),
    Guard(
        "3.16 a request after the loop has closed",
        ISLAND,
        "Island.request",
        "loop_handle.event_loop.is_closed()",
        "False",
    ),
    # -- a subscriber that raises
    Guard(
        "2.13 on_next raises",
        SYNC_ISLAND,
        "SyncIsland._drain_raised",
        (
            "if isinstance(error, SubscriberRaised):\n"
            "    self._subscriber_raised('on_next', error.error)\n"
            "    return"
        ),
        "if isinstance(error, SubscriberRaised):\n    self.error = error.error",
    ),
    Guard(
        "2.13 on_next raises in a task",
        TASK_ISLAND,
        "TaskIsland._main",
        "self._subscriber_raised('on_next', raised.error)",
        "self.error = raised.error",
    ),
    Guard(
        "2.13 on_subscribe raises",
        ISLAND,
        "Island.begin",
        "self._subscriber_raised('on_subscribe', error)",
        "raise",
    ),
    Guard(
        "2.13 a terminal signal raises",
        ISLAND,
        "Island._send_end",
        "self._subscriber_raised('on_complete' if error is None else 'on_error', raised)",
        "raise",
    ),
    Guard(
        "2.13 the error is reported",
        ISLAND,
        "Island._subscriber_raised",
        "self.loop_handle.report",
        "str",
    ),
    # -- threads, fairness, context, tasks
    Guard(
        "threads: an island wakes on the loop's thread",
        ISLAND,
        "Island.request",
        "get_ident() != loop_handle.thread",
        "False",
    ),
    Guard(
        "threads: signals of foreign publishers arrive on the loop's thread",
        INNER,
        "InnerSubscriber.on_next",
        "self._owner.loop_handle.call_soon_threadsafe(self.on_next, element)",
        "self._owner.loop_handle.run(self.on_next.__func__, self, element)",
    ),
    Guard(
        "fairness: a synchronous drain yields to the loop",
        SYNC_ISLAND,
        "SyncIsland._must_go_on",
        "self._suspend(pause)",
        "return pause is SLICE_OVER or self._suspend(pause)",
    ),
    Guard(
        "fairness: a task yields to the loop",
        TASK_ISLAND,
        "TaskIsland.yield_slice",
        "await yield_to_loop()",
        "pass",
    ),
    Guard(
        "fairness: a pushed island yields when more work is left",
        LOOPS,
        "",
        "'if S.is_slice_over:\\n    S.emitted = emitted\\n    yield SLICE_OVER'",
        "''",
    ),
    Guard(
        "fairness: a pushed task yields when more work is left",
        LOOPS,
        "",
        "'if S.is_slice_over:\\n    S.emitted = emitted\\n    await S.yield_slice()'",
        "''",
    ),
    Guard(
        "fairness: a stage that expands one element yields to the loop",
        LOOPS,
        "_Writer._line",
        "[f'for x in {rest}:', *_indent(1, self._turn_mid_element())]",
        "[f'for x in {rest}:']",
    ),
    Guard(
        "fairness: the clock decides, not a count",
        CORE + "time_slice.py",
        "TimeSlice.next_batch_size",
        "now >= self.slice_end",
        "False",
    ),
    Guard(
        "context: callbacks run in the subscriber's context",
        CORE + "loop.py",
        "LoopHandle.enter",
        "self.context.run(work, argument)",
        "work(argument)",
    ),
    Guard(
        "tasks: an interruption is reported",
        TASK_ISLAND,
        "TaskIsland._main",
        "self.error = Interrupted('the task of this subscription was cancelled from outside')",
        "pass",
    ),
    Guard(
        "tasks: a cancellation before the first step is reported (3.13)",
        ISLAND,
        "Island._on_task_done",
        "self.phase is not Phase.CLOSED",
        "False",
    ),
    Guard(
        "tasks: CancelledError is not swallowed", TASK_ISLAND, "TaskIsland._main", "raise", "return"
    ),
    Guard(
        "tasks: cancelling a task that waits for cleanup does not cancel the cleanup",
        CORE + "loop.py",
        "wait_settled",
        "asyncio.wait([asyncio.ensure_future(each) for each in work])",
        "asyncio.gather(*work, return_exceptions=True)",
    ),
    # -- elements that are discarded
    Guard(
        "discards: elements that wait for an island",
        INPUT,
        "InputQueue.close",
        "self.on_discard is not None",
        "False",
    ),
    Guard(
        "discards: elements that an upstream has sent to an operator",
        INNER,
        "InnerSubscriber.cancel",
        "self._discard(held)",
        "pass",
    ),
    Guard(
        "discards: elements that an upstream sends after it was cancelled",
        INNER,
        "InnerSubscriber.on_next",
        "self._discard((element,))",
        "pass",
    ),
    Guard(
        "discards: elements that an operator emits after its end",
        CORE + "upstreams/coordinator.py",
        "Coordinator.emit",
        "self.discard(elements)",
        "pass",
    ),
    Guard(
        "discards: elements in a queue",
        CORE + "queues/output_buffer.py",
        "OutputBuffer.cancel",
        "self.discard(discarded)",
        "pass",
    ),
    Guard(
        "discards: elements of a group or window",
        CORE + "upstreams/splitting.py",
        "Branch.cancel",
        "self._discard(discarded)",
        "pass",
    ),
    Guard(
        "discards: elements that stages hold",
        LOOPS,
        "_Writer._discarding",
        "held or ['pass']",
        "['pass']",
    ),
    Guard(
        "discards: the element with which a stage raises",
        LOOPS,
        "_Writer._discarding",
        "self._lost_at('error')",
        "[]",
    ),
    Guard(
        "discards: an element that was delivered is not in the loop's hands",
        LOOPS,
        "_Writer._lost_at",
        "f'if {position}:'",
        "'if True:'",
    ),
    # -- foreign publishers and subscribers
    Guard(
        "2.5 a second subscription",
        INNER,
        "InnerSubscriber.on_subscribe",
        "self._cancel(subscription)",
        "pass",
        2,
    ),
    Guard(
        "2.13 None from a foreign publisher",
        INNER,
        "InnerSubscriber.on_next",
        "element is None",
        "False",
    ),
    Guard(
        "1.9 a missing subscriber",
        CORE + "subscription/subscribing.py",
        "require_subscriber",
        "subscriber is None",
        "False",
    ),
)
