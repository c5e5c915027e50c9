"""The pulse of the workers: memory in which each says that it lives, and since when its commit is under way.

What may live here: the memory, and what is read from it. Who writes is `svc/actors/watch/store.py`; who replaces a
worker that stands still, `parent.py`. All of it is monotonic seconds (`World.elapsed_s`), which the processes of a
machine share; 0 = not.
"""

from __future__ import annotations

import mmap


class PulseBoard:
    """Memory that a parent and its workers share: whether each worker serves and lives, and how often it was
    replaced.
    """

    def __init__(self, workers: int) -> None:
        memory = memoryview(mmap.mmap(-1, 8 * 5 * workers))
        self._serving_since, self._beaten_at, self._commit_since, self._leader_since = (
            memory[8 * workers * row : 8 * workers * (row + 1)].cast("d") for row in range(4)
        )
        self._restarts = memory[8 * workers * 4 :].cast("Q")

    def mark_serving(self, index: int, now_s: float) -> None:
        """Note that the worker of this index serves from now on."""
        self._serving_since[index] = self._beaten_at[index] = now_s

    def are_all_serving(self) -> bool:
        """Whether every worker serves."""
        return all(self._serving_since)

    def beat(self, index: int, now_s: float, commit_since_s: float | None) -> None:
        """Note that the worker's loop runs, and since when a commit of it is under way."""
        self._beaten_at[index] = now_s
        self._commit_since[index] = commit_since_s or 0.0

    def mark_leader(self, index: int, now_s: float) -> None:
        """Note that this worker is the leader from now on, and no other."""
        for other in range(len(self._leader_since)):
            self._leader_since[other] = now_s if other == index else 0.0

    def silent_s(self, index: int, now_s: float) -> float:
        """For how long the loop of a worker that serves has not run; 0 for one that does not serve yet."""
        return max(0.0, now_s - self._beaten_at[index]) if self._serving_since[index] else 0.0

    def silences_s(self, now_s: float) -> list[float]:
        """`silent_s` of every worker."""
        return [self.silent_s(index, now_s) for index in range(len(self._beaten_at))]

    def leader_silent_s(self, now_s: float) -> float:
        """`silent_s` of the leader; 0 while there is none yet."""
        return max(
            (self.silent_s(index, now_s) for index, since_s in enumerate(self._leader_since) if since_s), default=0.0
        )

    def oldest_commit_s(self, now_s: float) -> float:
        """The age of the oldest commit that is under way in any worker; 0 without one."""
        return max((now_s - since_s for since_s in self._commit_since if since_s), default=0.0)

    def restarts(self) -> list[int]:
        """How often each worker was replaced, since the start of the parent."""
        return list(self._restarts)

    def note_death(self, index: int, now_s: float, *, replaced: bool) -> float:
        """Note that a worker died; for the parent. Returns for how many seconds it had served."""
        since = self._serving_since[index]
        self._serving_since[index] = self._beaten_at[index] = self._commit_since[index] = 0.0
        self._restarts[index] += replaced
        return now_s - since if since else 0.0
