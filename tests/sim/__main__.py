"""`python -m tests.sim --seeds 5000` plays that many seeds; `--seed 123` tells the story of one.

Exit code 1 when a seed is wrong, with the command that replays it, or when the oracles forgave
something in more plays than such a batch explains. What they forgave is printed at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.sim import forgiven, modes
from tests.sim.world import FORGED_FROM


def main() -> int:
    """Play what the arguments ask for, and print what was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its history")
    parser.add_argument("--seeds", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    wish = parser.parse_args()
    if wish.seed is not None:
        found, lines = modes.replay(wish.seed)
        print("\n".join(lines))
        return 1 if found else 0
    return _many(range(wish.first, wish.first + wish.seeds), wish.workers)


def _many(seeds: range, workers: int) -> int:
    began, wrong = time.monotonic(), 0
    plays: Counter[str] = Counter()
    most: Counter[str] = Counter()
    with ProcessPoolExecutor(workers) as pool:
        for seed, (found, uses) in zip(seeds, pool.map(_play, seeds, chunksize=10), strict=True):
            plays += Counter(uses.keys())
            most |= uses
            if not found:
                continue
            wrong += 1
            print(f"seed {seed}: replay with: make sim SEED={seed}")
            for sentence in found[:5]:
                print(f"  {sentence}", flush=True)
    # Of later seeds each is of a special kind, and has its own share of what is forgiven.
    judged = seeds.stop <= FORGED_FROM
    too_often = forgiven.too_often_in_a_batch(plays, len(seeds)) if judged else []
    for sentence in too_often:
        print(sentence)
    took_s = time.monotonic() - began
    print(_table(plays, most, len(seeds)), file=sys.stderr)
    print(f"{len(seeds)} seeds, {wrong} wrong, {took_s:.1f} s", file=sys.stderr)
    return 1 if wrong or too_often else 0


def _play(seed: int) -> tuple[list[str], Counter[str]]:
    found, outcome = modes.storm(seed)
    return found, +outcome.forgiven


def _table(plays: Counter[str], most: Counter[str], seeds: int) -> str:
    """What was forgiven, in how many plays, and how often in one: each beside its limit."""
    lines = [f"{'forgiven':32} {'plays':>6} {'limit':>6} {'in one':>7} {'limit':>6}"]
    for name, limit in sorted(forgiven.LIMITS.items()):
        columns = plays[name], limit.plays(seeds), most[name], limit.a_play
        lines.append("{:32} {:6} {:6} {:7} {:6}".format(name, *columns))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
