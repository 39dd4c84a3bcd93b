"""The stories of the notes, each a fixed scenario on a simulated cluster of real nodes, shown step by step.

A story is a file under `scenarios/`:

    @story(
        "acks-one-loss",                                     # a name of registry.ORDER
        en="One line for the list", ko="목록의 한 줄",
        options=(Option.ACKS_ONE,),                          # the variants that it has, if any
        note=Said("where the protocol differs from the notes", "노트와 다른 점"),          # if it does
    )
    async def acks_one_loss(stage: Stage) -> None:
        await stage.open(brokers=("X", "Y", "Z"), min_isr=1)  # nodes, topic peter-test01; the first broker leads
        x, y, z = stage["X"], stage["Y"], stage["Z"]
        await stage.send("M1", "M2")                          # and wait for each answer
        await stage.settle()                                  # all replicas caught up, checkpoints written
        stage.hold("Y", "X")                                  # what Y sends to X is kept back: Y fetches no more
        m3 = await stage.send_soon("M3", acks=1)              # and go on at once
        await stage.until(lambda: x.end == 3)                 # at the very turn after which that holds
        stage.narrate(en="what happens, and why", ko="…")        # one step: a sentence and a frame
        stage.kill("X")
        await stage.until(lambda: y.leads)
        if stage.has(Option.ACKS_ONE):
            stage.lost("M4", en="acknowledged by X alone", ko="X만 응답한 메시지")       # red from the next frame on
        stage.narrate(...)
        stage.point(m3.is_acknowledged and "M3" in y.names, en="the story's point", ko="…")   # raises if it is not so

Verbs: open, send, send_soon, transactional (a producer with init, begin, send, commit, abort), read, do (anything of a client:
Admin, …), kill, power_loss, stop, restart, pause, resume, hold, cut, isolate, release, until, wait (virtual seconds), settle,
narrate, show, lost, doubled, reordered, dirty, diverged, note_of, pin, point.
To look: stage["X"] (`nodes.StageNode`: end, high_watermark, epoch, leads, is_up, is_back, names, held(), checkpoint(), and of the
metadata log quorum_role, quorum_epoch, metadata_end, metadata_high_watermark, metadata_held(), snapshots), stage.leader,
stage.epoch, stage.isr, stage.state(), stage.image, stage.active_controller.

`until` checks its condition after every turn of every process, so the world can be stopped between a request and its answer: until
the leader has a message its followers have not, until they have it and the watermark has not moved. What must last longer is held
with `hold`. An option replaces one decision of the code (`disabled_mechanisms.py`), or is a setting that the story itself uses with
`stage.has(Option.X)`.

Every story ends with `point`, in each of its variants. The renderers (`render/`) see frames only.
"""
