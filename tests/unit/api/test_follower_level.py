from .leader import Leader, offsets, part
import pytest


@pytest.mark.parametrize("how", ["nothing", "delete_records", "replicas change", "duplicate"])
def test_level_for_a_minute_then_one_append(how):
    leader = Leader((1, 2))
    leader.append(1)
    asked = leader.fetch(part(1, last=0))
    sid = None
    for n in range(1, 121):
        leader.loop.run(0.5)
        sid = sid or asked.session_id
        asked = leader.fetch(session=(sid, n))
        if n == 2:
            if how == "delete_records":
                leader.partition().delete_records(-1)
            elif how == "replicas change":
                leader.broker.change(replicas=(1, 2, 3))
            elif how == "duplicate":
                leader.partition().after_append()     # what a batch that was there already comes to
            leader.loop.run()
    leader.append(1)
    now = leader.loop.time()
    print(how, "caught up", now - leader.follower().caught_up_at, "s ago")
    assert leader.partition().leadership.shrinking(2, 1, now) is None
