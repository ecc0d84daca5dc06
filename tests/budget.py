"""How much a run of the tests may cost: a plain one (`make test`) tries fewer examples of each law than `make long`."""

import os
from typing import Final

IS_LONG: Final = bool(os.environ.get("TEST_LONG"))


def examples(count: int) -> int:
    """So many examples in a long run; a fifth of them, but not fewer than five, in a plain one."""
    return count if IS_LONG else max(5, count // 5)
