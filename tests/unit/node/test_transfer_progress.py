"""What goes on moving at the least rate, and what does not (SEC-L3, SEC-L4)."""

from __future__ import annotations

from strandline.node.transfer_progress import TransferProgress

LEAST = 1000


def test_the_least_has_to_move_within_each_timeout() -> None:
    progress = TransferProgress()
    assert not progress.is_stalled(0, LEAST, 100.0, 10.0)
    assert not progress.is_stalled(LEAST - 1, LEAST, 109.9, 10.0)
    assert not progress.is_stalled(LEAST, LEAST, 110.0, 10.0)
    assert not progress.is_stalled(LEAST, LEAST, 119.0, 10.0)
    assert progress.is_stalled(2 * LEAST - 1, LEAST, 120.0, 10.0), "what came before does not count again"


def test_a_byte_is_enough_where_no_more_is_asked_for() -> None:
    progress = TransferProgress()
    assert not progress.is_stalled(5, 1, 1.0, 8.0)
    assert not progress.is_stalled(5, 1, 8.9, 8.0)
    assert not progress.is_stalled(6, 1, 9.0, 8.0)
    assert not progress.is_stalled(6, 1, 16.9, 8.0)
    assert progress.is_stalled(6, 1, 17.0, 8.0)


def test_more_may_be_asked_for_meanwhile() -> None:
    progress = TransferProgress()
    for second in range(20):
        assert not progress.is_stalled(second, 1, float(second), 30.0)
    assert not progress.is_stalled(20, LEAST, 20.0, 3.0), "counted from the last progress on"
    assert not progress.is_stalled(21, LEAST, 21.0, 3.0)
    assert progress.is_stalled(22, LEAST, 22.0, 3.0)


def test_it_is_not_the_peers_fault_when_we_do_not_read() -> None:
    progress = TransferProgress()
    assert not progress.is_stalled(5, LEAST, 0.0, 10.0)
    progress.reset()
    assert not progress.is_stalled(5, LEAST, 50.0, 10.0)
    assert progress.is_stalled(5, LEAST, 60.0, 10.0)
