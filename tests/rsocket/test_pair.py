"""Two connections under any commands: demand, order, bounds."""

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import (
    Cancelled,
    Closed,
    Completed,
    DemandReceived,
    Elements,
    Event,
    Failed,
    RequestReceived,
)
from reactive_aio.rsocket.protocol.frames import Payload, Setup
from reactive_aio.rsocket.protocol.limits import Limits
from reactive_aio.rsocket.protocol.stream_states import RESPONDER_STATES, InteractionModel
from tests.core.machines import run

from .wire import apart

LIMITS = Limits(mtu=64, watermark=2000, chunk=8, max_streams=6)


class Half:
    """What one side knows of one stream: demand, elements, the end; and that they keep the law."""

    def __init__(self) -> None:
        self.requested = 0  # by this side
        self.received: list[bytes] = []
        self.granted = 0  # to this side
        self.sent: list[bytes] = []
        self.in_over = self.out_over = False
        self.completed = False


class Side:
    """One connection, and the books its driver would keep."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.halves: dict[int, Half] = {}
        self.past: list[tuple[int, Half]] = []

    def half(self, stream_id: int) -> Half:
        return self.halves[stream_id]

    def take(self, events: list[Event]) -> None:
        for event in apart(events):
            assert not isinstance(event, Closed), event
            if isinstance(event, RequestReceived):
                half = self.halves[event.stream_id] = Half()
                half.in_over = event.model is not InteractionModel.CHANNEL
                half.out_over = event.model is InteractionModel.FNF
                half.granted = int(event.model is InteractionModel.RESPONSE)
            elif isinstance(event, Elements | Completed | Failed | Cancelled | DemandReceived):
                self.act(self.half(event.stream_id), event)

    def act(self, half: Half, event: Event) -> None:
        if isinstance(event, Elements):
            assert not half.in_over, "rule 1.7: nothing after the end"
            half.received += [payload.data for payload in event.payloads]
            assert len(half.received) <= half.requested, "rule 1.1: no more than requested"
            half.in_over = half.completed = event.complete
        elif isinstance(event, Completed):
            assert not half.in_over
            half.in_over = half.completed = True
        elif isinstance(event, Failed):
            assert not half.in_over
            half.in_over = True
        elif isinstance(event, Cancelled):
            assert not half.out_over
            half.out_over = True
        elif isinstance(event, DemandReceived):
            assert not half.out_over
            assert event.n > 0
            half.granted += event.n


class Talk(RuleBasedStateMachine):
    """Commands in any order, bytes cut anywhere, frames under way for any time."""

    def __init__(self) -> None:
        super().__init__()
        client = Connection(Setup(), 0.0, limits=LIMITS)
        server = Connection(None, 0.0, limits=LIMITS)
        server.receive(client.data_to_send(), 0.0)
        server.accept(0.0)
        self.sides = [Side(client), Side(server)]
        self.pipes = [b"", b""]  # from each side
        self.number = 0
        self.halves: dict[int, tuple[Half | None, Half | None]] = {}

    def element(self, size: int) -> Payload:
        self.number += 1
        return Payload(b"%d," % self.number + b"." * size)

    def pick(self, side: int, pick: int) -> tuple[int, Half] | None:
        halves = self.sides[side].halves
        if not halves:
            return None
        stream_id = sorted(halves)[pick % len(halves)]
        return stream_id, halves[stream_id]

    # -- what applications do ----------------------------------------------------------------------
    @rule(
        side=st.integers(0, 1),
        model=st.sampled_from([*RESPONDER_STATES]),
        n=st.sampled_from([1, 2, 5, 100, 2**63 - 1]),
        size=st.sampled_from([0, 10, 300]),
        complete=st.booleans(),
    )
    def request(
        self, side: int, model: InteractionModel, n: int, size: int, complete: bool
    ) -> None:
        connection = self.sides[side].connection
        if sum(stream.is_local for stream in connection.streams.by_id.values()) > 4:
            return
        half, payload = Half(), self.element(size)
        if model is InteractionModel.RESPONSE:
            half.requested, half.out_over = 1, True
            stream_id = connection.request_response(payload)
        elif model is InteractionModel.FNF:
            half.in_over = half.out_over = True
            stream_id = connection.fire_and_forget(payload)
        elif model is InteractionModel.STREAM:
            half.requested, half.out_over = n, True
            stream_id = connection.request_stream(payload, n)
        else:
            half.requested, half.out_over = n, complete
            half.granted, half.sent = 1, [payload.data]
            stream_id = connection.request_channel(payload, n, complete=complete)
        assert stream_id not in self.sides[side].halves
        self.sides[side].halves[stream_id] = half

    @rule(side=st.integers(0, 1), pick=st.integers(0, 9), n=st.sampled_from([1, 3, 50, 2**63 - 1]))
    def ask(self, side: int, pick: int, n: int) -> None:
        if found := self.pick(side, pick):
            stream_id, half = found
            if not half.in_over:
                stream = self.sides[side].connection.streams.by_id[stream_id]
                if stream.model is not InteractionModel.RESPONSE:
                    half.requested += n
            self.sides[side].connection.request(stream_id, n)

    @rule(
        side=st.integers(0, 1),
        pick=st.integers(0, 9),
        size=st.sampled_from([0, 1, 50, 500]),
        count=st.integers(1, 9),
        last=st.booleans(),
    )
    def send(self, side: int, pick: int, size: int, count: int, last: bool) -> None:
        connection = self.sides[side].connection
        if found := self.pick(side, pick):
            stream_id, half = found
            for _ in range(min(count, half.granted - len(half.sent))):
                payload = self.element(size)
                stream = connection.streams.by_id.get(stream_id)
                response = stream is not None and stream.model is InteractionModel.RESPONSE
                taken = connection.send(stream_id, payload, complete=last)
                assert taken == (not half.out_over)
                if taken:
                    half.sent.append(payload.data)
                    half.out_over = last or response

    @rule(
        side=st.integers(0, 1),
        pick=st.integers(0, 9),
        sizes=st.lists(st.sampled_from([0, 1, 50, 500]), min_size=1, max_size=9),
    )
    def send_all(self, side: int, pick: int, sizes: list[int]) -> None:
        connection = self.sides[side].connection
        if found := self.pick(side, pick):
            stream_id, half = found
            stream = connection.streams.by_id.get(stream_id)
            if stream is not None and stream.model is InteractionModel.RESPONSE:
                return
            wanted = sizes[: half.granted - len(half.sent)]
            elements = [self.element(size).data for size in wanted]
            taken = connection.send_all(stream_id, elements) if elements else False
            assert taken == (bool(elements) and not half.out_over)
            if taken:
                half.sent += elements

    @rule(side=st.integers(0, 1), pick=st.integers(0, 9), fails=st.booleans())
    def end(self, side: int, pick: int, fails: bool) -> None:
        connection = self.sides[side].connection
        if found := self.pick(side, pick):
            stream_id, half = found
            if fails:
                done = connection.fail_stream(stream_id, 0x201, b"no")
            else:
                done = connection.complete(stream_id)
            assert done == (not half.out_over) or (fails and not half.in_over)
            half.out_over = half.out_over or done
            self.turn(side)

    @rule(side=st.integers(0, 1), pick=st.integers(0, 9))
    def cancel(self, side: int, pick: int) -> None:
        if found := self.pick(side, pick):
            stream_id, half = found
            done = self.sides[side].connection.cancel(stream_id)
            assert done == (not half.in_over)
            half.in_over = True
            self.turn(side)

    # -- what drivers do ---------------------------------------------------------------------------
    @rule(side=st.integers(0, 1))
    def turn(self, side: int) -> None:
        self.sides[side].take(self.sides[side].connection.flush(0.0))

    @rule(side=st.integers(0, 1), at_most=st.sampled_from([1, 100, 5000]))
    def write(self, side: int, at_most: int) -> None:
        self.pipes[side] += self.sides[side].connection.data_to_send(at_most)

    @rule(side=st.integers(0, 1), size=st.sampled_from([1, 7, 100, 5000]))
    def carry(self, side: int, size: int) -> None:
        data, self.pipes[side] = self.pipes[side][:size], self.pipes[side][size:]
        self.sides[1 - side].take(self.sides[1 - side].connection.receive(data, 0.0))

    # -- what must always be so --------------------------------------------------------------------
    @invariant()
    def what_arrives_is_what_was_sent(self) -> None:
        client, server = self.sides
        for stream_id, half in client.halves.items():
            other = server.halves.get(stream_id)
            if other is not None:
                assert half.received == other.sent[: len(half.received)]
                assert other.received == half.sent[: len(other.received)]
                if half.completed:
                    assert half.received == other.sent
                if other.completed:
                    assert other.received == half.sent
                # The peer's demand is passed on, and no more than that.
                assert other.granted <= max(half.requested, 1)
                assert half.granted - 1 <= other.requested or half.granted <= 1

    @invariant()
    def nothing_grows(self) -> None:
        for side in self.sides:
            exchanges = side.connection
            assert exchanges.streams.remote_count <= LIMITS.max_streams
            assert exchanges.output.queued_bytes >= 0
            assert exchanges.reassemblies.count <= len(exchanges.streams.by_id)
            waiting = sum(stream.queued_bytes for stream in exchanges.streams.by_id.values())
            assert exchanges.output.queued_bytes >= waiting
            if not exchanges.streams.by_id:
                assert exchanges.reassemblies.size == 0

    def teardown(self) -> None:
        for _ in range(60):
            for side in (0, 1):
                self.turn(side)
                self.write(side, 100_000)
                self.carry(side, 1_000_000)
        self.what_arrives_is_what_was_sent()
        for each in self.sides:
            assert each.connection.queued_bytes == 0
            for stream_id, half in each.halves.items():
                live = stream_id in each.connection.streams.by_id
                assert live == (not (half.in_over and half.out_over)), (stream_id, vars(half))


def test_two_connections_follow_the_rules_under_any_commands() -> None:
    Talk.TestCase.settings = settings(stateful_step_count=60, deadline=None)
    run(Talk)
