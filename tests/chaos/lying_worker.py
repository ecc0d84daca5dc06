"""A worker that lies on purpose: between the model and the log it spoils the fifth piece of text.

`python -m tests.chaos.lying_worker worker ...`, as Celery itself. Answers are spoiled in another of three ways each.
"""

import itertools
import sys
from typing import Any

import django
from celery.__main__ import main as celery

AT = 5
LIES = ("lose", "double", "swap")


def main() -> None:
    """Spoil the product's code in this process, then work."""
    django.setup()
    from chat.streams.writing.writer import StreamWriter

    begin, write = StreamWriter.__init__, StreamWriter.write
    lies = itertools.cycle(LIES)

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self.spoken, self.kept, self.lie = 0, [], next(lies)

    def spoiled(self: Any, chunk: Any) -> None:
        self.spoken += chunk["type"] == "text-delta"
        if self.spoken == AT and chunk["type"] == "text-delta":
            if self.lie == "double":
                write(self, chunk)
            else:
                self.kept += [chunk] * (self.lie == "swap")
                return
        write(self, chunk)
        while self.kept:
            write(self, self.kept.pop())

    StreamWriter.__init__ = init  # type: ignore[method-assign]  # the lie
    StreamWriter.write = spoiled  # type: ignore[method-assign]  # the lie
    sys.argv = ["celery", *sys.argv[1:]]
    celery()


if __name__ == "__main__":
    main()
