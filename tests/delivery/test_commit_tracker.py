"""Positions of a log: committed in order, none before all elements up to it are done."""

from hypothesis import given, strategies as st

from reactive_aio.delivery.commit_tracker import CommitTracker, Entry

ACTS = st.lists(
    st.tuples(st.sampled_from(["add", "done", "done", "take"]), st.integers(0, 99)), max_size=60
)


@given(ACTS, st.integers(1, 3))
def test_any_order_of_acknowledgements_commits_in_order(
    acts: list[tuple[str, int]], partitions: int
) -> None:
    tracker: CommitTracker[int] = CommitTracker()
    open_: list[Entry[int]] = []
    is_done: dict[int, list[bool]] = {each: [] for each in range(partitions)}
    committed = dict.fromkeys(range(partitions), -1)
    passed = 0

    def done_up_to(partition: int) -> int:
        states = is_done[partition]
        return states.index(False) - 1 if False in states else len(states) - 1

    def take() -> None:
        for partition, position in tracker.take().items():
            assert position > committed[partition], "a commit goes back"
            assert position == done_up_to(partition)
            committed[partition] = position
        assert tracker.uncommitted == 0
        assert committed == {each: done_up_to(each) for each in range(partitions)}

    for act, pick in acts:
        if act == "add":
            states = is_done[pick % partitions]
            open_.append(tracker.add(pick % partitions, len(states)))
            states.append(False)
        elif act == "done" and open_:
            entry = open_.pop(pick % len(open_))
            is_done[int(str(entry.partition))][entry.position] = True
            passed += tracker.done(entry)
        elif act == "take":
            take()
        added = sum(map(len, is_done.values()))
        assert passed == sum(done_up_to(each) + 1 for each in range(partitions))
        assert tracker.held == added - passed
    for entry in open_:
        is_done[int(str(entry.partition))][entry.position] = True
        passed += tracker.done(entry)
    assert tracker.held == 0
    take()
    assert tracker.take() == {}


def test_a_partition_without_elements_is_forgotten() -> None:
    tracker: CommitTracker[int] = CommitTracker()
    for partition in range(1000):
        tracker.done(tracker.add(partition, 0))
        assert tracker.take() == {partition: 0}
    assert not tracker._partitions
