"""The start that the stories of 101, 102 and 103 share: 101 leads in leader epoch 1, and 103 is the next to be elected.

Always true when it is over: all logs are empty, so the first message is at offset 0 in epoch 1, as in the pictures.
"""

from __future__ import annotations

from strandline.stories.stage import Stage

BROKERS = ("101", "102", "103")


async def lead_in_epoch_1(stage: Stage) -> None:
    # The first of the replicas that is in sync is elected: 103 is named first, and gives way to 101 for a moment.
    await stage.open(brokers=BROKERS, assignments={0: ["103", "101", "102"]})
    stage.pin("acks", "all")
    await stage.stop("103")
    await stage.until(lambda: stage["101"].leads)
    stage.restart("103")
    await stage.settle()
    stage.point(stage.epoch == 1 and stage.leader == "101", "101 leads in epoch 1", "101이 에포크 1의 리더")
