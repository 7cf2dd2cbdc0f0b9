"""`python -m tests.sim --seeds 5000` plays that many seeds; `--seed 123` tells the story of one.

Exit code 1 when a seed is wrong; each then prints the command that replays it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.sim import modes


def main() -> int:
    """Parse, play, report."""
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
    with ProcessPoolExecutor(workers) as pool:
        for seed, found in zip(seeds, pool.map(_play, seeds, chunksize=10), strict=True):
            if not found:
                continue
            wrong += 1
            print(f"seed {seed}: replay with: make sim SEED={seed}")
            for sentence in found[:5]:
                print(f"  {sentence}", flush=True)
    took_s = time.monotonic() - began
    print(f"{len(seeds)} seeds, {wrong} wrong, {took_s:.1f} s", file=sys.stderr)
    return 1 if wrong else 0


def _play(seed: int) -> list[str]:
    return modes.storm(seed)[0]


if __name__ == "__main__":
    sys.exit(main())
