"""How a history ended.

Always true: no problems means that it came to its end and everything that must hold held.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    seed: int
    scenario: str
    problems: list[str]
    trace_hash: str
    virtual_s: float
    acknowledged: int
    faults: dict[str, int] = field(default_factory=dict)
    transcript: str = ""

    def __str__(self) -> str:
        harm = ", ".join(f"{kind} {count}x" for kind, count in self.faults.items()) or "none"
        verdict = "\n".join(self.problems) or "all is well"
        return (
            f"seed {self.seed}: {self.scenario}\n{self.transcript}\n"
            f"{self.virtual_s:.3f} s of virtual time, {self.acknowledged} acknowledged, faults: {harm}\n"
            f"trace {self.trace_hash}\n{verdict}"
        )
