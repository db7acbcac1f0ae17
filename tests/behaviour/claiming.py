"""One agent of many, in a process of its own: claims whatever can be made, makes it, and may be killed at any time."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from headway.errors import HeadwayError, TryLater
from headway.life import Life
from headway.project import Project
from headway.work import Meant, Work

LEASE = 2.0


def main(root: str, name: str, fatal: float) -> int:
    """Work until everything is done; 0 then. `fatal`: how likely each step is to be the last."""
    chance = random.Random(name)

    def perhaps_die() -> None:
        if chance.random() < fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    with Life(Work(Project(root)), by=name) as hands:
        while True:
            try:
                claimed = hands.claim_next(Meant("p"), lease=LEASE)
            except TryLater as nothing:
                if nothing.error_code == "next.done":
                    return 0
                time.sleep(0.3)
                continue
            perhaps_die()
            artifact_id, token = claimed["artifact"], claimed["token"]
            try:
                if chance.random() < 0.05:
                    hands.release("p", artifact_id, token=token, reason="not today")
                    continue
                hands.complete("p", artifact_id, token=token, text=f"{artifact_id} by {name}".encode())
            except HeadwayError as lost:
                if lost.error_code != "claim.lost":
                    raise
            perhaps_die()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
