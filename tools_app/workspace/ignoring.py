"""Applies `.gitignore` rules apart from all else: on threads of its own, a share for each person, within a time.

Rules are a stranger's text as soon as an archive was unpacked, and may take long with many paths. So a search
first reads, and what it found is looked through here. It ends when its time is over, or when the call that wants it
has been given up.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from thinkproject.kernel.threads import ThreadPool
from tools_app.core.files.gitignore import IgnoreRules
from tools_app.errors import FileFailed

SECONDS: Final = 2.0
"""Processor time for the rules of one search. Those of real projects take milliseconds."""
THREADS: Final = 4
THREADS_PER_USER: Final = 1

searches: Final = ThreadPool("search", lambda: THREADS, share=lambda: THREADS_PER_USER)


async def ignored_ones(files: Iterable[tuple[str, str]], paths: Sequence[tuple[str, bool]]) -> list[bool]:
    """Say of each path whether it is ignored. `files`: directories and texts; `paths`: each with "is a directory".

    Errors: `FileFailed` (`EFBIG`) where that takes too long; `Saturated` where this person's other searches do.
    """
    texts = sorted(files, key=lambda file: len(file[0]))
    if not texts or not paths:
        return [False] * len(paths)
    given_up = threading.Event()
    try:
        return await searches.run(partial(_looked_through, texts, paths, given_up))
    finally:
        given_up.set()


def _looked_through(
    texts: Sequence[tuple[str, str]], paths: Sequence[tuple[str, bool]], given_up: threading.Event
) -> list[bool]:
    end = time.thread_time() + SECONDS

    def check() -> None:
        if given_up.is_set() or time.thread_time() > end:
            raise FileFailed(
                "The .gitignore files here take too long to apply. Search with what they exclude included.",
                errno="EFBIG",
                path="",
            )

    rules = IgnoreRules.empty(check)
    for directory, text in texts:
        rules = rules.with_file(directory, text)
    return [rules.ignores(path, is_directory=is_directory) for path, is_directory in paths]
