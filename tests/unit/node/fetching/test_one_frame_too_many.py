import asyncio
from .leading import Stage, API_VERSIONS, _Served

def test_one_frame_too_many_with_the_versions():
    stage = Stage(3)
    async def story(stage):
        real = _Served.write
        def write(self, key, version, correlation_id, body):
            before = self.transport.write
            if key == API_VERSIONS and stage.leader.accepted == 1:
                out = []
                self_t = self.transport
                class T:
                    def write(_, data): out.append(data)
                self.transport = T()
                real(self, key, version, correlation_id, body)
                self.transport = self_t
                self_t.write(out[0] + b"\0\0\0\4\0\0\0\7")
            else:
                real(self, key, version, correlation_id, body)
        _Served.write = write
        try:
            p = stage.broker.partition()
            stage.follow(p)
            stage.leader.produce(b"a")
            took = await stage.until(lambda: p.log.log_end_offset == 1, 300)
            print("took", took)
        finally:
            _Served.write = real
    stage.play(story)
