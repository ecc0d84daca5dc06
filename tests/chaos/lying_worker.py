"""A worker that lies on purpose: between the model and the log it loses, doubles or swaps the fifth piece of text.

`python -m tests.chaos.lying_worker LIE worker ...`: LIE is `lose`, `double` or `swap`; the rest is Celery's.
"""

import sys
from typing import Any

import django
from celery.__main__ import main as celery

AT = 5


def main(lie: str) -> None:
    """Spoil the product's code in this process, then work."""
    django.setup()
    from chat.streams.writer import StreamWriter

    begin, write = StreamWriter.__init__, StreamWriter.write

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self.spoken, self.kept = 0, []

    def spoiled(self: Any, chunk: Any) -> None:
        self.spoken += chunk["type"] == "text-delta"
        if self.spoken == AT and chunk["type"] == "text-delta":
            if lie == "double":
                write(self, chunk)
            else:
                self.kept += [chunk] * (lie == "swap")
                return
        write(self, chunk)
        while self.kept:
            write(self, self.kept.pop())

    StreamWriter.__init__ = init  # type: ignore[method-assign]  # the lie
    StreamWriter.write = spoiled  # type: ignore[method-assign]  # the lie
    sys.argv = ["celery", *sys.argv[2:]]
    celery()


if __name__ == "__main__":
    main(sys.argv[1])
