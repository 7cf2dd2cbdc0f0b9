"""One schedule, which knows no other: its runs, its due times, its Jobs and its status.

Whatever happens to a schedule comes in through `core.route`, which hands each handler here a `Turn`
and the schedule's `Entry`. Nothing in this package can reach another schedule: `core.state` is not
imported here, and `make lint` checks that.
"""
