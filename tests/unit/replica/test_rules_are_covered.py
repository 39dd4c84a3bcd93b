"""Every rule of the data plane and every row of its scenarios has a test that bears its name, or shows it as a story.

Always true: what is named here exists. What is not tested yet says so, and why.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HERE = "tests/unit/replica/"
CONTROLLER = "tests/unit/controller/"
SYSTEM = "tests/system/"

TESTS = {
    "A1": ["test_partition.py::test_a1_the_watermark_is_the_least_of_all_that_are_in_sync"],
    "A2": ["test_partition.py::test_a2_the_watermark_stands_still_under_min_isr"],
    "A3": ["test_partition.py::test_a3_with_too_few_in_sync_nothing_is_written"],
    "A4": ["test_partition.py::test_a4_too_few_at_the_end_of_the_wait"],
    "A5": [
        "test_partition.py::test_a5_who_waits_for_a_leader_that_is_none_any_more_is_told",
        "tests/unit/api/test_produce.py::test_a_wait_ends_with_its_timeout",
    ],
    "A6": [
        "test_partition.py::test_a6_who_knows_another_epoch_is_told",
        "tests/unit/api/test_list_offsets.py::test_leader_epochs_fence",
        "tests/unit/api/test_offset_for_leader_epoch.py::test_the_current_leader_epoch_fences",
    ],
    "A7": [
        "tests/unit/api/test_fetch.py::test_a_log_that_parts_from_ours_is_told_where",
        "stories/a9_c_the_follower_is_longer.txt",
    ],
    "A8": [
        "tests/unit/api/test_fetch.py::test_below_the_log_start_there_is_nothing_to_part_from",
        "test_following.py::test_a8_a_leader_that_is_shorter_cuts_and_one_that_starts_later_begins_anew",
    ],
    "A9": [
        "test_following.py::test_a9_a_cut_is_where_the_shorter_of_both_ends_of_the_epoch_is",
        "stories/a9_a_logs_agree.txt",
        "stories/a9_b_the_follower_is_shorter.txt",
        "stories/a9_c_the_follower_is_longer.txt",
        "stories/a9_d_the_leader_went_on_in_a_later_epoch.txt",
        "stories/a9_e_an_epoch_that_the_leader_never_saw.txt",
        "stories/a9_f_several_rounds.txt",
        "stories/a9_g_nothing_in_common.txt",
    ],
    "A10": [
        "test_following.py::test_a10_an_answer_of_another_epoch_or_position_is_stale",
        "test_following.py::test_a10_batches_of_a_later_epoch_than_asked_for_are_not_taken",
    ],
    "A11": [
        "test_following.py::test_a11_the_watermark_is_the_leaders_as_far_as_the_log_goes",
        "test_following.py::test_a11_a_corrupt_batch_is_not_written_and_the_good_ones_before_it_are",
        "stories/a11_the_watermark_waits_for_the_flush.txt",
    ],
    "A12": [
        "test_partition.py::test_a12_a_new_epoch_begins_at_the_log_end_without_a_record",
        "stories/a12_positions_of_an_earlier_reign_count_for_nothing.txt",
    ],
    "A13": [
        "test_partition.py::test_a13_a_leader_behind_its_epochs_start_does_not_tell_the_end",
        "stories/s19_a_new_leaders_watermark_lags.txt",
    ],
    "A14": ["test_partition.py::test_a14_readers_of_committed_records_stop_at_an_open_transaction"],
    "A15": ["test_followers.py::test_a15_what_is_appended_during_a_fetch_keeps_nobody_out"],
    "A16": [
        "test_partition.py::test_a16_a_follower_is_named_to_consumers_only_if_it_has_what_they_want",
        SYSTEM + "test_rolling_restart.py::test_a_consumer_reads_from_the_replica_in_its_rack",
    ],
    # As far as it goes without authorization: no authorizer is accepted, and a stranger's position never counts.
    "A17": [
        "tests/unit/config/test_node.py::test_a17_no_authorizer_is_accepted_that_would_not_guard_who_fetches_as_a_replica",
        "tests/unit/api/test_replica_fetch.py::test_a6_one_that_may_be_ahead_of_our_metadata_waits_before_it_is_refused",
    ],
    "A18": [
        "tests/unit/log/test_rot.py::test_a18_an_unclean_restart_rebuilds_indexes_epochs_and_producers",
        "stories/a18_torn_tail.txt",
    ],
    "B1": [
        "test_leadership.py::test_b1_who_has_all_that_is_committed_and_all_from_before_the_epoch_may_join",
        "test_leadership.py::test_b1_the_start_of_the_epoch_has_to_be_reached",
        "test_leadership.py::test_b1_who_is_fenced_or_of_another_incarnation_may_not",
        "stories/b1_a_late_fetch_of_an_earlier_incarnation.txt",
    ],
    "B2": [
        "test_leadership.py::test_b2_who_was_not_level_for_too_long_leaves",
        "test_leadership.py::test_b2_who_left_for_being_late_is_not_wished_back_before_it_fetches",
    ],
    "B3": [
        "test_leadership.py::test_b3_who_joins_counts_at_once_and_who_leaves_until_it_is_done",
        "test_isr.py::test_b3_whoever_the_controller_may_believe_in_sync_counts",
    ],
    "B4": [
        CONTROLLER + "test_alter_partition.py::test_b4_who_may_change_it_to_what",
        "stories/b4_another_incarnation_than_the_leader_saw.txt",
    ],
    "B5": [
        "test_leadership.py::test_b5_what_was_surely_not_done_is_rolled_back",
        "test_leadership.py::test_b5_what_may_have_been_done_stays_pending_until_the_metadata_tells",
        "test_partition.py::test_b5_an_older_partition_epoch_never_overwrites_a_newer_one",
        "stories/b5_refused_wishes.txt",
    ],
    "B6": [CONTROLLER + "test_partition_change.py::test_b6_the_leader_epoch_rises_on_elections_and_removals"],
    "B7": [CONTROLLER + "test_partition_change.py::test_b7_a_clean_election"],
    "B8": [CONTROLLER + "test_elections.py::test_b8_elections_that_are_asked_for"],
    "B9": [
        CONTROLLER + "test_partition_change.py::test_b9_an_unclean_election",
        "stories/b9_the_last_leader_when_nobody_is_eligible.txt",
    ],
    "B10": [
        CONTROLLER + "test_partition_change.py::test_b10_who_stays_eligible",
        "stories/b9_elr_keeps_who_had_everything.txt",
    ],
    "B11": [CONTROLLER + "test_brokers.py::test_b11_an_unexpected_previous_epoch_is_an_unclean_restart"],
    "B12": [
        CONTROLLER + "test_brokers.py::test_b12_a_new_broker_is_fenced_and_its_epoch_is_the_offset_of_its_record",
        CONTROLLER + "test_brokers.py::test_b12_another_incarnation_waits_until_the_session_is_over",
    ],
    "B13": [
        CONTROLLER
        + "test_heartbeats.py::test_b13_a_broker_that_fell_silent_is_fenced_and_back_with_its_next_heartbeat",
        CONTROLLER + "test_brokers.py::test_b13_a_fenced_broker_leaves_isr_and_leadership_in_the_same_decision",
    ],
    "B14": [
        CONTROLLER + "test_heartbeats.py::test_b14_leaders_move_first_and_active_brokers_know_before_it_stops",
        "stories/b14_controlled_shutdown.txt",
        SYSTEM + "test_failover.py::test_the_leader_is_told_to_stop",
        SYSTEM + "test_rolling_restart.py::test_nobody_hears_of_it_and_nothing_is_lost",
    ],
    "B15": [
        CONTROLLER + "test_partition_change.py::test_b15_a_reassignment_ends",
        "stories/b15_a_reassignment_grows_then_shrinks.txt",
        "stories/b15_a_reassignment_is_cancelled.txt",
        SYSTEM + "test_reassign_tools.py::test_kafkas_tool_moves_a_topic_and_back",
    ],
    "S4": [
        SYSTEM + "test_survivors.py::test_the_last_broker_keeps_serving",
        SYSTEM + "test_two_of_three.py::test_nothing_is_lost",
        SYSTEM + "test_failover.py::test_the_leader_is_killed",
    ],
    "S5": [SYSTEM + "test_rolling_restart.py::test_a_consumer_reads_from_the_replica_in_its_rack"],
    "S6": ["stories/s06_followers_pull.txt"],
    "S7": ["stories/s07_isr_is_the_leaders_list.txt"],
    "S8": ["stories/s08_late_followers_leave_and_return.txt", "stories/s08_a_burst_is_no_lag.txt"],
    "S9": [
        "stories/s09_consumers_stop_at_the_watermark.txt",
        SYSTEM + "test_survivors.py::test_what_only_the_leader_has_is_not_seen_and_is_cut_when_it_returns",
    ],
    "S10": ["stories/s10_four_steps_of_a_commit.txt"],
    "S11": [
        "stories/s11_the_watermark_goes_on_without_the_lost.txt",
        "stories/s11_the_answer_comes_before_the_metadata.txt",
    ],
    "S12": [
        "tests/unit/node/test_replicas.py::test_the_three_checkpoints_say_what_kafkas_say",
        "test_partition.py::test_the_watermark_that_was_written_down_is_where_a_restart_begins",
        SYSTEM + "test_two_of_three.py::test_nothing_is_lost",
    ],
    # One position is still to come: the committed offset, with groups.
    "S13": [SYSTEM + "test_survivors.py::test_positions_that_other_clients_can_ask_for"],
    "S14": [
        "tests/unit/cli/test_replica_table.py::test_every_replica_has_a_row_and_its_leaders_lag",
        "tests/unit/node/sight/test_positions.py::test_a_leader_tells_of_its_followers",
        SYSTEM + "test_rolling_restart.py::test_every_replica_tells_the_same",
    ],
    "S15": ["stories/s15_every_leader_has_its_epoch.txt"],
    "S16": ["stories/s16_recovery_by_epoch_keeps_message2.txt"],
    "S17": ["stories/s17_recovery_by_epoch_cuts_the_other_message2.txt"],
    "S18": ["stories/s18_101_102_103.txt"],
    "S19": ["stories/s19_a_new_leaders_watermark_lags.txt"],
    "S20": [
        "stories/s20_a_returning_broker_cuts_and_joins.txt",
        "stories/s20_a_killed_leader_returns.txt",
        SYSTEM + "test_survivors.py::test_what_only_the_leader_has_is_not_seen_and_is_cut_when_it_returns",
    ],
    "S21": [
        "stories/s21_acks_1_can_lose.txt",
        SYSTEM + "test_survivors.py::test_what_only_the_leader_has_is_not_seen_and_is_cut_when_it_returns",
    ],
    "S22": [
        "stories/s22_a_retry_duplicates.txt",
        "stories/s22_an_idempotent_producer_neither.txt",
        SYSTEM + "test_failover.py::test_the_leader_stands_still_and_wakes_up_deposed",
    ],
    "S23": [
        "stories/s23_min_insync_replicas.txt",
        "stories/s23_too_few_at_completion.txt",
        SYSTEM + "test_survivors.py::test_the_last_broker_keeps_serving",
    ],
    "S24": [
        "stories/s24_without_unclean_election_it_waits.txt",
        "stories/s24_with_unclean_election_it_loses.txt",
        SYSTEM + "test_survivors.py::test_without_a_replica_in_sync_a_partition_waits_or_loses",
    ],
    "S25": [
        "stories/s25_leadership_returns_to_the_preferred.txt",
        SYSTEM + "test_failover.py::test_the_first_replica_leads_again_when_it_is_asked_for",
        SYSTEM + "test_reassign_tools.py::test_the_preferred_leader_leads_again",
    ],
}
"""Paths without a directory are in this one."""

LATER: dict[str, str] = {}

RULES = [f"A{n}" for n in range(1, 19)] + [f"B{n}" for n in range(1, 16)] + [f"S{n}" for n in range(4, 26)]


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test_or_a_story_that_exists(rule: str) -> None:
    assert (rule in TESTS) is not (rule in LATER), "either it has a test or there is a reason"
    for name in TESTS.get(rule, []):
        path, _, function = name.partition("::")
        path = path if path.startswith("tests/") else HERE + path
        assert (ROOT / path).exists(), name
        assert not function or function in functions_in(path), name


def test_every_story_is_told_for_some_rule() -> None:
    told = {name for names in TESTS.values() for name in names}
    stories = {f"stories/{path.name}" for path in (Path(__file__).parent / "stories").glob("*.txt")}
    assert stories <= told
