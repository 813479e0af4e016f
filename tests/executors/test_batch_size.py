"""A batch of the output grows as long as it is small and quickly made."""

import pytest

from reactive_aio.spark.executors.batch_size import BatchSize


def sizes(bytes_per_row: int, seconds_per_row: float, most: int = 10_000) -> list[int]:
    size = BatchSize(most)
    found: list[int] = []
    for _ in range(8):
        found.append(size.rows)
        size.measure(size.rows, size.rows * bytes_per_row, size.rows * seconds_per_row)
    return found


def test_it_grows_from_one_row_to_the_limit() -> None:
    assert sizes(10, 1e-6) == [1, 8, 64, 512, 4096, 10_000, 10_000, 10_000]
    assert sizes(10, 1e-6, most=5) == [1, *[5] * 7]


def test_it_has_four_megabytes_at_most() -> None:
    assert sizes(2**20, 1e-6) == [1, *[4] * 7]
    assert sizes(2**24, 1e-6) == [1] * 8


def test_it_takes_half_a_second_at_most() -> None:
    assert sizes(10, 0.01) == [1, 8, *[50] * 6]
    assert sizes(10, 3.0) == [1] * 8


@pytest.mark.parametrize(("size", "seconds"), [(0, 0.0), (0, 1e-9)])
def test_rows_without_size_or_time_do_not_limit_it(size: int, seconds: float) -> None:
    each = BatchSize(100)
    each.measure(1, size, seconds)
    assert each.rows == 8


def test_it_shrinks_when_rows_become_large() -> None:
    size = BatchSize(10_000, rows=10_000)
    size.measure(10_000, 10_000 * 2**20, 0.1)
    assert size.rows == 4
    size.measure(0, 0, 0.0)
    assert size.rows == 4
