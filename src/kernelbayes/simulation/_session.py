"""The loop that brings a design, a ledger and a crew together."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._typing import Array
from ._calling import Outcome
from ._crews import Crew, Task
from ._interrupts import Interrupts
from ._records import Book, Form, Record
from ._runs import FEWEST_TO_JUDGE, MOST_FAILED, SimulationError, commonest

# How long to wait for news before looking at the clock and at Ctrl-C.
_POLL, _POLL_OTHERS = 0.05, 0.2
#: Rows of a batch for a vectorised simulator; batches begin at its multiples.
BATCH = 100


class Session:
    """One call of `simulate`, from the first run that is missing to the last."""

    def __init__(
        self, ledger: Book, crew: Crew, interrupts: Interrupts, bar: Any, block: int, end: float, full: bool = False
    ):
        self._ledger, self._crew, self._interrupts, self._bar = ledger, crew, interrupts, bar
        self._block, self._end, self._full = block, end, full
        self._again: deque[Task] = deque()
        self._batched: set[tuple[int, ...]] = set()  # runs that were asked for in batches
        self._left = ledger.budget - ledger.ended()
        self.batches: list[str] = []  # those that failed as a whole, and why
        self._ended: Counter[int | None] = Counter()  # runs of each form, and None for those that failed

    def run(self) -> str | None:
        """Work until all is done, and then return None, or until "interrupted" or the "time" is up."""
        try:
            return self._work()
        except KeyboardInterrupt:
            return "interrupted"

    def _work(self) -> str | None:
        told = False
        while True:
            why = self._why_stop()
            if why is None:
                self._hand_out()
            elif not told and self._crew.busy:
                told = True
                self._bar.set_description_str("waiting for runs under way" + (" (Ctrl-C drops them)" * (why != "time")))
            if self._crew.busy:
                self._book(self._crew.gather(_POLL))
            elif why is not None or self._all_done():
                return why
            else:  # what is left, others are doing
                time.sleep(_POLL_OTHERS)

    def _why_stop(self) -> str | None:
        if self._interrupts.requested:
            return "interrupted"
        return "time" if time.monotonic() > self._end else None

    def _all_done(self) -> bool:
        ended = self._ledger.ended()
        self._left = self._ledger.budget - ended
        self._bar.update(ended - self._bar.n)  # others may have done some
        return self._left == 0

    def _hand_out(self) -> None:
        wanted = self._crew.wants(max(1, -(-self._left // self._block)))
        tasks = [self._again.popleft() for _ in range(min(wanted, len(self._again)))]
        wanted -= len(tasks)
        if wanted > 0:
            tasks += self._cut(self._ledger.claim(wanted * self._block, self._block))
        if tasks:
            self._crew.take(tasks)

    def _cut(self, runs: list[int]) -> Iterator[Task]:
        """Runs as tasks: one each, or the blocks of a vectorised simulator.

        A block of which some runs are known is run whole once more: the others then draw the numbers that they would have
        drawn with them. It is always of one size, where `full`, so that it does not matter how many runs there are yet.
        """
        if self._block == 1:
            yield from (self._alone(run) for run in runs)
            return
        blocks: dict[int, list[int]] = {}
        for run in runs:
            blocks.setdefault(run // self._block, []).append(run)
        for number, block in blocks.items():
            first, stop = number * self._block, min((number + 1) * self._block, self._ledger.budget)
            first = first if self._full else max(first, self._ledger.start)
            rows = self._ledger.rows[first:stop]
            if self._full and len(rows) < self._block:
                rows = np.concatenate([rows, np.repeat(rows[-1:], self._block - len(rows), axis=0)])
            self._batched.add(tuple(block))
            yield Task(tuple(block), rows, first)

    def _alone(self, run: int) -> Task:
        return Task((run,), self._ledger.rows[[run]], run)

    # ------------------------------------------------------------------------------------------------- what came back

    def _book(self, outcomes: Iterable[Outcome]) -> None:
        records: list[Record] = []
        for outcome in outcomes:
            batched = outcome.indices in self._batched
            self._batched.discard(outcome.indices)
            if outcome.kind is not None and batched:  # one row spoils a batch: find out which
                self.batches.append(f"a batch of {len(outcome.indices)} rows failed as a whole: {outcome.reason}")
                self._again.extend(self._alone(run) for run in outcome.indices)
            else:
                records += self._records(outcome)
        if not records:
            return
        self._ledger.record(records)
        self._ended.update(record.form for record in records)
        self._left -= len(records)
        self._bar.update(len(records))
        if self._failed:
            self._bar.set_postfix_str(f"{self._failed} failed", refresh=False)
            self._give_up_if_most_fail()

    @property
    def _failed(self) -> int:
        return self._ended.total() - max(
            (number for form, number in self._ended.items() if form is not None), default=0
        )

    def _records(self, outcome: Outcome) -> Iterator[Record]:
        seconds = outcome.seconds / len(outcome.indices)
        if outcome.outputs is None:
            run = outcome.indices[0]
            yield Record(run, self._ledger.rows[run], None, None, seconds, outcome.kind, outcome.reason)
            return
        outputs, statistics = outcome.outputs, outcome.statistics
        number, form = self._ledger.form(Form(outputs.shape[1:], statistics))
        if statistics is not None and form.statistics is not None:
            outputs = outputs[:, [statistics.index(name) for name in form.statistics]]
        for run, output in zip(outcome.indices, outputs, strict=True):
            row, problem = self._ledger.rows[run], _not_finite(output, form.statistics)
            if problem is None:
                yield Record(run, row, output, number, seconds, None, None)
            else:
                yield Record(run, row, None, None, seconds, "not finite", problem)

    def _give_up_if_most_fail(self) -> None:
        ended = self._ended.total()
        if ended >= FEWEST_TO_JUDGE and self._failed > MOST_FAILED * ended:
            runs = self._ledger.runs()
            raise SimulationError(
                f"simulator: {self._failed} of the first {ended} runs failed, so the rest was not tried. The commonest "
                f"reasons:\n  {commonest(runs)}",
                runs,
            )


def _not_finite(output: Array, statistics: tuple[str, ...] | None) -> str | None:
    bad = ~np.isfinite(output)
    if not bad.any():
        return None
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    what = f"statistic {statistics[where[0]]!r}" if statistics else f"output{list(where)}" if where else "the output"
    return f"{what} is {output[where]}"
