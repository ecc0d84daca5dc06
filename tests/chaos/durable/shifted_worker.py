"""A worker whose own clock is wrong by `CHAOS_SHIFT_SECONDS`: `python -m tests.chaos.durable.shifted_worker worker …`.

The clocks that product code reads are shifted (`time.time`, Django's `timezone.now`), not the monotonic ones.
"""

import datetime as dt
import os
import sys
import time
from typing import Any


def main() -> None:
    """Shift the clocks of this process, then work."""
    seconds = float(os.environ["CHAOS_SHIFT_SECONDS"])
    real_time = time.time
    time.time = lambda: real_time() + seconds
    from django.utils import timezone

    real_now = timezone.now
    timezone.now = lambda: real_now() + dt.timedelta(seconds=seconds)
    run: Any = __import__("celery.__main__", fromlist=["main"]).main
    sys.argv = ["celery", *sys.argv[1:]]
    run()


if __name__ == "__main__":
    main()
