from strandline.errors import ErrorCode
from strandline.api import fetch
from strandline.wire import messages
from .leader import Leader, offsets, part, Asked, Request, FETCH, VERSION


def consume(leader, offset, min_bytes=1):
    message = Request(max_wait_ms=500, min_bytes=min_bytes, max_bytes=1 << 24, session_id=0, session_epoch=-1)
    message.topics = [Request.FetchTopic(topic_id=leader.topic_id, partitions=[part(offset, epoch=-1)])]
    frame = bytearray(messages.encode_request(FETCH, VERSION, message))
    return Asked(fetch.handle(memoryview(frame), leader.broker.context(FETCH, VERSION), 0), VERSION)


def test_consumer_is_woken_by_a_commit_of_what_was_appended_before_the_last_commit():
    leader = Leader((1, 2))
    a = leader.fetch(part(0))
    leader.append(1, 1)                   # two batches, pipelined
    leader.loop.run()
    s = leader.fetch(part(1, last=0), session=(a.session_id, 1))   # the follower took the first only
    assert leader.partition().high_watermark == 1
    consumer = consume(leader, 1)
    assert consumer.is_waiting
    leader.fetch(part(2, last=0), session=(a.session_id, 2))
    assert leader.partition().high_watermark == 2
    leader.loop.run(0.4)
    assert not consumer.is_waiting, "the second record is committed for 400 ms"


def test_ends_while_idle_then_append_is_not_late_at_once():
    leader = Leader((1, 2))
    asked = leader.fetch(part(0))
    epoch = 1
    for _ in range(120):   # a minute of idle fetches
        leader.loop.run(0.5)
        sid = asked.session_id if epoch == 1 else sid
        asked = leader.fetch(session=(sid, epoch))
        epoch += 1
    asked.later.cancel()     # the connection breaks
    leader.append(1)
    now = leader.loop.time()
    print("caught up", now - leader.follower().caught_up_at, "s ago")
    assert leader.partition().leadership.shrinking(1, 1, now) is None


def test_sessions_of_anybody():
    leader = Leader((1, 2))
    for replica in range(1000, 3000):
        leader.fetch(replica=replica, max_wait_ms=0)
    n = len(leader.broker.parts.follower_sessions)
    assert n < 100, n


def test_warm_once():
    leader = Leader((1, 2))
    leader.append(1)
    leader.partition().log.active.file.inode.cold.update(range(8))
    leader.fetch(part(0))
    for _ in range(50):
        leader.append(1)
        leader.partition().log.active.file.inode.cold.update(range(8))
        leader.loop.run()
    assert len(leader.beside) <= 2, len(leader.beside)


def test_told_again_when_named_again():
    """The reply to the Fetch before is dropped by its follower, since it names the partition anew."""
    leader = Leader((1, 2, 3), )
    a2 = leader.fetch(part(0))
    leader.fetch(part(0), replica=3)
    leader.append(1)
    leader.loop.run()
    sid = a2.session_id
    b = leader.fetch(part(1, last=0), session=(sid, 1))
    leader.fetch(part(1, last=0), replica=3)
    assert leader.partition().high_watermark == 1
    leader.loop.run(0.5)
    assert b.answer.high_watermark == 1      # lost: the follower named the partition again meanwhile
    c = leader.fetch(part(1, last=0), session=(sid, 2))
    leader.loop.run(0.5)
    assert c.answers.get(0) is not None, "HW is not told again"
