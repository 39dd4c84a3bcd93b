from __future__ import annotations

from strandline.histories.judges.quorum.flushed_survives import FlushedSurvives

from .stage import broken, stage


def test_a_node_comes_back_with_all_that_was_on_its_device() -> None:
    story = stage(FlushedSurvives)
    story.see(2, log_end_offset=10, flushed_offset=7)
    story.see(2, life=2, log_end_offset=7, flushed_offset=7)
    with broken(FlushedSurvives):
        story.see(2, life=3, log_end_offset=6, flushed_offset=6)


def test_what_it_cut_itself_is_not_expected_back() -> None:
    story = stage(FlushedSurvives)
    story.see(2, log_end_offset=10, flushed_offset=10)
    story.see(2, log_end_offset=5, flushed_offset=5)
    story.see(2, life=2, log_end_offset=5, flushed_offset=5)


def test_a_new_disk_has_nothing() -> None:
    story = stage(FlushedSurvives)
    story.see(2, log_end_offset=10, flushed_offset=10)
    story.observed.forget(2)
    story.see(2, life=2)
