import pytest
from strandline.errors import ErrorCode, KafkaError
from strandline.replica.isr import IsrAnswer
from .bench import Bench, image, NONE


@pytest.mark.parametrize("how", ["ineligible", "metadata first, then stale", "metadata only"])
def test_second_rejoiner_is_not_forgotten(how):
    """ISR {1}; 2 and 3 are level. 3 fetched while the wish for 2 was under way, and says nothing more while idle."""
    on = Bench(image(isr=(1,)), min_isr=2)
    on.fetched(2, 0)
    on.fetched(3, 0)
    [wish] = on.wishes
    if how == "ineligible":
        # 2 has just been fenced: the metadata comes first ...
        del on.epochs[2]
        on.partition.expand_isr()
        # ... then the answer
        on.partition.isr_answered(wish, ErrorCode.INELIGIBLE_REPLICA)
    else:
        # done by the controller, the answer is lost (failover), the retry is refused as stale
        on.partition.apply(image(isr=(1, 2), partition_epoch=2))
        if how != "metadata only":
            on.partition.isr_answered(wish, ErrorCode.INVALID_UPDATE_VERSION)
    for _ in range(20):
        on.loop.run(15)
        on.partition.shrink_isr(on.now())
    if how == "ineligible":
        with pytest.raises(KafkaError) as e:
            on.append(for_all=True)
        print("acks=all after 300 s:", e.value.code.name)
    assert len(on.wishes) > 1, "3 was never wished for"
