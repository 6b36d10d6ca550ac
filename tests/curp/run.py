"""Redis's keys replicated in one round trip, by processes that die and stand still.

`manxdb cluster up curp` starts a cluster; an unmodified redis-cli and clients of few lines talk to its
proxy and to its servers.

| file | checks |
|---|---|
| `round_trips` | round trips, counted; what a Redis client sees |
| `failures` | each role dies or stands still under load; a spare that followed the log takes a place |
| `all_stop` | all processes end and come back |
| `roles` | processes that start alone, a new witness, hostile bytes |
| `scripts` | scripts in Lua |
| `slots` | hash slots that move to another cluster and back |
| `data_plane` | witnesses in XDP |

    run.py [word of a check's name …]
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "redis")]

from harness.checks import main  # noqa: E402
import round_trips  # noqa: E402, F401
import failures  # noqa: E402, F401
import roles  # noqa: E402, F401
import all_stop  # noqa: E402, F401
import scripts  # noqa: E402, F401
import slots  # noqa: E402, F401
import data_plane  # noqa: E402, F401

if __name__ == "__main__":
    main()
