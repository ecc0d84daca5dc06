"""Works that race each other."""

import threading
from collections.abc import Callable

from django.db import connection


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run each work on a thread and connection of its own, all started at once."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            barrier.wait(10)
            work()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return errors
