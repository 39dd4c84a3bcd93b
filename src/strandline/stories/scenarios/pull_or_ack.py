"""pull-or-ack: what goes over the wire when followers pull, against mirrors that acknowledge each message (S6).

The pulling is real, counted as it leaves the brokers; the mirror is a model: for each message one push and one ACK per mirror.
"""

from __future__ import annotations

from strandline.stories.registry import story
from strandline.stories.stage import Stage

FOLLOWERS = ("2", "3")
PACE_S = 0.0001


@story(
    "pull-or-ack",
    en="Messages on the wire: followers that pull against mirrors that acknowledge each message",
    ko="통신 횟수: 팔로워가 풀 하는 방식과 미러가 메시지마다 ACK를 보내는 방식의 비교",
)
async def pull_or_ack(stage: Stage) -> None:
    await stage.open(brokers=("1", "2", "3"))
    leader = stage["1"]
    await stage.send("M1")
    await stage.settle()
    stage.narrate(
        "Broker 1 leads, 2 and 3 follow, M1 is committed. Each follower has its next fetch, from offset 1, waiting at the leader: "
        "the leader answers it as soon as there is something.",
        "브로커 1이 리더, 2와 3이 팔로워이고 M1은 커밋되었다. 팔로워들의 다음 요청인 '1번 오프셋 가져오기'가 "
        "리더에서 기다리고 있고, "
        "리더는 새 메시지가 오면 바로 응답한다.",
    )

    before = _fetches(stage)
    m2 = await stage.send_soon("M2")
    await stage.until(lambda: all(stage[name].end == 2 for name in FOLLOWERS))
    is_unknown = leader.high_watermark == 1
    stage.narrate(
        "M2 goes out as the answer to those fetches. The followers have it, and send no ACK: no such message exists. "
        "A mirror would now acknowledge M2.",
        "M2는 그 요청들의 응답으로 전달된다. 팔로워들은 M2를 저장했지만 ACK를 보내지 않는다. 그런 메시지 자체가 없다. "
        "미러라면 지금 M2의 ACK를 보낼 것이다.",
    )

    await stage.until(lambda: m2.is_over)
    one = _fetches(stage) - before
    stage.point(
        is_unknown and one == len(FOLLOWERS), "one fetch each, and it is the ACK", "가져오기 한 번이 곧 ACK이다"
    )
    stage.narrate(
        "They fetch again, from offset 2: that is the acknowledgement, and the question for more, in one. M2 is committed.",
        "팔로워들이 2번 오프셋을 요청한다. 이것이 M2를 받았다는 확인이자 다음 메시지의 요청이다. M2는 커밋되었다.",
    )

    before = _fetches(stage)
    await stage.send(*(f"M{number}" for number in range(3, 13)))
    by_one = _fetches(stage) - before
    stage.clients.words()
    _count(stage, 10, by_one)
    stage.narrate(
        "Ten messages one after the other, each sent when the one before was acknowledged: every fetch brings one message, "
        "and pulling costs as much as a mirror's push and ACK.",
        "메시지 10개를 하나씩, 앞의 응답을 받은 뒤에 보낸다. 가져오기 한 번에 메시지 하나이므로 푸시와 ACK를 "
        "주고받는 것과 횟수가 같다.",
    )

    before = _fetches(stage)
    messages = []
    for number in range(13, 113):
        messages.append(await stage.send_soon(f"M{number}"))
        await stage.wait(PACE_S)
    await stage.until(lambda: all(message.is_over for message in messages))
    at_once = _fetches(stage) - before
    stage.clients.words()
    _count(stage, 100, at_once)
    stage.narrate(
        "A hundred messages as fast as they come: what arrives while a fetch is on its way goes out with the next answer, many at "
        "a time. One offset acknowledges them all.",
        "메시지 100개가 쉴 새 없이 들어온다. 가져오기가 오가는 동안 쌓인 메시지는 다음 응답에 한꺼번에 실려 간다. "
        "오프셋 하나가 그 모두의 확인이다.",
    )

    await stage.settle()
    read = await stage.read()
    stage.clients.words()
    for count, fetches in ((1, one), (10, by_one), (100, at_once)):
        _count(stage, count, fetches)
    stage.narrate(
        "The table. Pull: fetch requests and their responses, counted on the wire. Mirror: a model, for each message "
        "and mirror one "
        "push and one ACK; of ten thousand messages, as the notes say, 20,000 ACKs alone.",
        "표로 정리하면 다음과 같다. 풀은 실제로 오간 가져오기 요청과 응답의 수이고, 미러는 메시지와 미러마다 푸시 한 "
        "번과 ACK 한 번으로 "
        "계산한 모델이다. 노트의 말대로 만 개면 ACK만 2만 번이 추가된다.",
    )
    stage.point(
        2 * by_one <= _mirrored(10)
        and 2 * at_once * 5 < _mirrored(100)
        and len(read) == 112
        and all(node.names == read for node in stage.brokers.values()),
        f"The offset of the next fetch is the ACK: 100 messages took {2 * at_once} messages on the wire, "
        f"not {_mirrored(100)}, and the busier the leader, the fewer.",
        f"다음 가져오기의 오프셋이 곧 ACK이다. 메시지 100개에 {_mirrored(100)}번이 아니라 {2 * at_once}번의 통신이면 되었고, "
        "리더가 바쁠수록 더 줄어든다.",
    )


def _fetches(stage: Stage) -> int:
    return sum(stage.requests(name, "1") for name in FOLLOWERS)


def _mirrored(messages: int) -> int:
    return 2 * messages * len(FOLLOWERS)


def _count(stage: Stage, messages: int, fetches: int) -> None:
    pull, mirror = 2 * fetches, _mirrored(messages)
    stage.note_of(
        "wire",
        f"{messages:>3} message{'s' if messages > 1 else ''}: pull {pull} ({fetches} fetches, {fetches} responses), "
        f"mirror {mirror} ({mirror // 2} pushes, {mirror // 2} ACKs, model)",
        f"메시지 {messages}개: 풀 {pull}번(요청 {fetches}, 응답 {fetches}), "
        f"미러 {mirror}번(푸시 {mirror // 2}, ACK {mirror // 2}, 모델)",
    )
