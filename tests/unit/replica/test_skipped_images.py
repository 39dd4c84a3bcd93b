from strandline.errors import ErrorCode
from strandline.wire.fetch import FetchedPartition
from .bench import Bench, image, as_leader_wrote, NOW_MS


def test_a_replica_that_was_taken_away_and_came_back_between_two_images_has_nothing():
    on = Bench()
    on.append(5)
    on.fetched(2, 5)
    on.fetched(3, 5)
    assert on.offsets == (5, 5)
    # reassigned to (1, 2): leader epoch 6, node 3 deletes its log; then to (1, 2, 3) again: node 3 begins an empty one.
    # This node was busy and sees only the last of these images.
    on.partition.apply(image(epoch=6, partition_epoch=5, replicas=(1, 2, 3), isr=(1, 2)))
    on.fetched(2, 5)            # anybody's fetch, or news of any broker
    on.partition.expand_isr()
    print([w.replicas for w in on.wishes])
    assert not any(3 in wish.replicas for wish in on.wishes), "3 has not fetched since, its log is empty"


class Reader:
    def __init__(self): self.told = []
    def wake(self, p, n): self.told.append(n)


def test_follower_reader():
    on = Bench(image(leader=2))
    r = Reader()
    on.partition.readers[r] = None
    on.take(records=as_leader_wrote((0, 1, 5)), high_watermark=0, log_start_offset=0)
    on.take(records=as_leader_wrote((1, 1, 5)), high_watermark=1, log_start_offset=0)
    on.take(high_watermark=2, log_start_offset=0)
    print(on.offsets, r.told)
    assert r.told[-1] > 0
