"""A simulator that counts, and fails in any way it is told to; workers run it by path."""

import os
import signal
import subprocess
import time
from pathlib import Path

COUNT, END, ERROR, CRASH, HANG, LEAVE, DAWDLE = range(7)
SLOW = 0.5  # seconds
FIELDS = {"count": ((2,), "int64"), "seed": ((), "uint32")}


class CountingEngine:
    """Counts actions from 0 in every episode; each is worth its own number of points."""

    def __init__(
        self,
        *,
        starts: bool = True,
        helper: bool = False,
        broken: int | None = None,
        log: str = os.devnull,
        talks: bool = False,
    ) -> None:
        """A `helper` is a process of its own, such as real simulators have.

        The episode of the seed `broken` cannot begin; every seed is noted in the `log`. One
        that `talks` prints what it does.
        """
        self._log, self._talks = Path(log), talks
        self._starts, self._has_helper, self._broken = starts, helper, broken
        self._helper: subprocess.Popen[bytes] | None = None
        self._count = self._seed = 0

    def begin(self, seed: int) -> None:
        if self._talks:
            print("*****\n*  G*\n*****", flush=True)
        with self._log.open("a") as log:
            print(seed, file=log)
        if not self._starts:
            raise OSError("there is no map\nof that name")
        if seed == self._broken:
            raise OSError("this map is broken")
        if self._has_helper and self._helper is None:
            self._helper = subprocess.Popen(["sleep", "1000"])
        self._count, self._seed = 0, seed

    def act(self, action: int) -> tuple[float, bool]:
        if self._talks:
            print("act", action, flush=True)
        self._count += 1
        if action == ERROR:
            raise ValueError("the counter broke")
        if action == CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == HANG:
            time.sleep(1000)
        if action == DAWDLE:
            time.sleep(SLOW)
        if action == LEAVE:
            Path("left.txt").write_text("in the folder of the worker")
        return float(self._count), action == END

    def observe(self, row) -> None:
        row["count"][...] = (self._count, -self._count)
        row["seed"][...] = self._seed

    def close(self) -> None:
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()
            self._helper = None
