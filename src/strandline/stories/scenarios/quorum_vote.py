"""quorum-vote: who may lead the metadata log: a majority decides, and votes only for a log as new as its own (S27-S30)."""

from __future__ import annotations

import asyncio

from strandline.client.aio import Admin, AsyncClient
from strandline.client.flow.descriptions import NewTopic
from strandline.stories.frames import BilingualText
from strandline.stories.registry import story
from strandline.stories.stage import Stage

VOTE = 52
FETCH_WAIT_S = 0.55
"""After so long the leader has answered the fetch that was waiting, and there is no other."""


@story(
    "quorum-vote",
    en="The leader of __cluster_metadata dies: the controller with an older log is refused, the one with the newest log wins",
    ko="__cluster_metadata의 리더가 죽는다: 오래된 로그를 가진 컨트롤러는 거절되고 최신 로그를 가진 컨트롤러가 이긴다",
    note=BilingualText(
        "The notes leave the election itself open (todo). A controller asks first whether it would win (pre-vote, KIP-996), "
        "so a refused candidate does not disturb the others with a higher epoch.",
        "노트는 선출 과정을 비워 두었다(todo). 컨트롤러는 먼저 이길 수 있는지 물어보므로(pre-vote, KIP-996), "
        "거절된 쪽이 에포크를 올려 다른 컨트롤러를 방해하지 않는다.",
    ),
)
async def quorum_vote(stage: Stage) -> None:
    await stage.open(
        brokers=("101",),
        controllers=3,
        topic="",
        lanes="metadata",
        node_config={"metadata.max.idle.interval.ms": "0"},
    )
    leader = stage.active_controller
    assert leader is not None
    newer, older = (name for name in stage.controllers if name != leader)
    await stage.until(lambda: len({_known(stage, name) for name in stage.controllers}) == 1)
    stage.show(metadata_from=stage[leader].metadata_end - 2, nodes=list(stage.controllers))
    stage.narrate(
        f"All metadata is one log with one partition, __cluster_metadata. Of the three controllers {leader} leads it, in quorum "
        f"epoch {stage[leader].quorum_epoch}; {newer} and {older} fetch from it, and so does every broker.",
        f"모든 메타데이터는 파티션이 하나인 __cluster_metadata 로그이다. 컨트롤러 셋 중 {leader}가 쿼럼 에포크 "
        f"{stage[leader].quorum_epoch}의 리더이고, {newer}과 {older}는 물론 모든 브로커가 이 로그를 가져간다.",
    )

    stage.hold(leader, older)
    await _create(stage, "topic-a", "operator")
    await stage.until(lambda: _known(stage, newer) == _known(stage, leader))
    committed = stage[leader].metadata_end
    stage.note_of("operator", "topic-a is created", "topic-a 생성됨")
    stage.narrate(
        f"{older} gets nothing from the leader any more. topic-a is created all the same: there is no ISR here, two of three "
        "have flushed the records to disk, a majority, and that is committed.",
        f"{older}는 더 이상 리더에게서 받지 못한다. 그래도 topic-a는 생성된다. 여기에는 ISR이 없고, 셋 중 둘, 즉 과반수가 "
        "디스크에 플러시했으므로 커밋된다.",
    )

    stage.hold(newer, leader)
    await stage.wait(FETCH_WAIT_S)
    creating = asyncio.ensure_future(_create(stage, "topic-b", "operator"))
    await stage.until(lambda: stage[leader].metadata_end == committed + 2)
    stage.point(stage[leader].metadata_high_watermark == committed, "topic-b waits", "topic-b는 기다린다")
    stage.narrate(
        f"Now the fetches of {newer} are held up too. The records of topic-b are in {leader}'s log only: not committed, "
        "and the operator has no answer.",
        f"이제 {newer}의 가져오기 요청도 막힌다. topic-b의 레코드는 {leader}의 로그에만 있다. 커밋되지 않았고 "
        "운영자는 응답을 받지 못한다.",
    )

    stage.kill(leader)
    await stage.until(lambda: stage[newer].quorum_role == "prospective")
    asked = stage.requests(older, newer, VOTE)
    await stage.until(lambda: stage.requests(older, newer, VOTE) > asked)
    await stage.wait(0.003)
    refused = stage.active_controller is None and stage[older].quorum_epoch == 1
    stage.narrate(
        f"{leader} dies. {newer} wants to lead, but {older} does not know of the failure and keeps to {leader} until its "
        f"fetches have been unanswered for too long. Then {older} itself asks for a vote: my log ends at offset "
        f"{stage[older].metadata_end}. {newer} has more, up to {stage[newer].metadata_end}, and refuses: a leader without "
        "topic-a would undo what was committed.",
        f"{leader}가 죽는다. {newer}이 리더가 되려 하지만, 장애를 모르는 {older}는 가져오기 요청의 응답이 너무 오래 없을 "
        f"때까지 {leader}를 리더로 여긴다. 그 뒤 {older}가 '내 로그는 {stage[older].metadata_end}번에서 끝난다'며 투표를 "
        f"요청하지만, {stage[newer].metadata_end}번까지 가진 {newer}은 거절한다. topic-a가 없는 리더는 커밋된 것을 되돌리기 "
        "때문이다.",
    )

    await stage.until(lambda: stage.active_controller is not None)
    stage.narrate(
        f"{newer} asks {older} again. Its log is newer than {older}'s, so it gets the vote: two of three, a majority, "
        f"and {newer} leads in epoch {stage[newer].quorum_epoch}.",
        f"{newer}이 {older}에게 다시 요청한다. {newer}의 로그가 더 최신이므로 {older}는 표를 준다. 셋 중 둘, 과반수이다. "
        f"{newer}이 에포크 {stage[newer].quorum_epoch}의 리더가 된다.",
    )

    await creating
    await stage.until(lambda: _known(stage, older) == _known(stage, newer))
    stage.note_of("operator", "topic-b is created", "topic-b 생성됨")
    stage.narrate(
        f"{older} copies what it missed. The operator's request, which had no answer, was tried again, "
        f"and {newer} writes topic-b anew, in its own epoch.",
        f"{older}는 놓친 것을 복제한다. 응답이 없던 운영자의 요청은 재시도되었고, {newer}이 topic-b를 자신의 "
        "에포크로 새로 기록한다.",
    )

    before = [held.name for held in stage[leader].metadata_held() if held.offset >= committed]
    stage.release()
    stage.restart(leader)
    await stage.until(lambda: len({_known(stage, name) for name in stage.controllers}) == 1)
    stage.narrate(
        f"{leader} returns and fetches with its epoch and offset, as a replica of a topic does. In {newer}'s log epoch 1 ends at "
        f"{committed}: {leader} cuts its own topic-b and copies the records of epoch 2.",
        f"{leader}가 돌아와 데이터 복제처럼 자신의 에포크와 오프셋으로 가져오기를 요청한다. {newer}의 로그에서 에포크 1은 "
        f"{committed}번에서 끝나므로, {leader}는 자신의 topic-b를 잘라 내고 에포크 2의 레코드를 복제한다.",
    )
    logs = [stage[name].metadata_held() for name in stage.controllers]
    stage.point(
        refused
        and stage.active_controller == newer
        and before == ["Topic topic-b", "Partition"]
        and all(log == logs[0] for log in logs)
        and {"topic-a", "topic-b"} <= {topic.name for topic in stage.image.topics.values()},
        "Only a controller whose log is at least as new as a majority's can win, so what a majority has is never lost.",
        "과반수만큼 최신인 로그를 가진 컨트롤러만 이길 수 있으므로, 과반수가 가진 메타데이터는 유실되지 않는다.",
    )


def _known(stage: Stage, name: str) -> tuple[int, int | None]:
    return stage[name].metadata_end, stage[name].metadata_high_watermark


async def _create(stage: Stage, topic: str, client: str) -> None:
    async def create(flow: AsyncClient) -> None:
        await Admin(flow).create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])

    await stage.do(client, create)
