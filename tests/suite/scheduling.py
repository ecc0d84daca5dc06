"""Which tests a process of pytest-xdist runs one after the other.

What shares a browser or a product stays together; elsewhere the tests of a module do, so that what they share is made
once and a process never waits for the next one. A costly module is dealt test by test: as a whole it would be the last
to end.
"""

import collections
import functools
import itertools
from collections.abc import Sequence
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it has none

from tests.suite import rotation

TOGETHER = (
    # What shares a browser and a product stays in one process: in halves, which end at about the same time.
    tuple(f"tests/browser/test_{letter}" for letter in "abcdefghijk"),
    ("tests/browser/",),
    tuple(f"tests/clients/test_{letter}" for letter in "abcdefghijkl"),
    ("tests/clients/",),
    ("tests/acceptance/bench/",),
    ("tests/acceptance/devex/test_existing_project.py",),
    ("tests/acceptance/ops/test_bodies.py",),
    ("tests/acceptance/ops/test_make_run.py", "tests/acceptance/ops/test_refusals.py"),  # in one copy of the tree
    (  # one product
        "tests/acceptance/wire/",
        "tests/acceptance/parking/",
        "tests/acceptance/programs/",
        "tests/acceptance/client/test_client.py",
        "tests/acceptance/client/test_tools.py",
        "tests/acceptance/devex/test_agent_chat.py",
        "tests/acceptance/ops/test_many_open.py",
        "tests/acceptance/ops/test_nginx.py",
        "tests/acceptance/ops/test_product.py",
        "tests/acceptance/ops/test_static.py",
    ),
    ("tests/unit/tools_app/browser/test_bounds.py",),
    ("tests/unit/tools_app/browser/test_network.py",),
    ("tests/unit/tools_app/browser/",),
)
_BEGINNINGS: Final = tuple(itertools.chain.from_iterable(TOGETHER))
_PROCESSES: Final = (*rotation.STARTING, "tests/chaos/")
CHEAP: Final = 2
MANY: Final = 10
"""Modules for each process from which on a module is dealt as a whole: a run of few would end with one process."""


@functools.cache
def group_of(nodeid: str, *, by_module: bool) -> str:
    """The name of what runs together with a test."""
    if nodeid.startswith(_BEGINNINGS):
        return next(beginning[0] for beginning in TOGETHER if nodeid.startswith(beginning))
    return nodeid.partition("::")[0] if by_module and rank_of(nodeid) == CHEAP else nodeid


def rank_of(nodeid: str) -> int:
    """What begins first: large groups, then what is costly, then the rest, whose last modules end together."""
    if nodeid.startswith(_BEGINNINGS):
        return 0
    is_costly = nodeid.startswith(_PROCESSES) or nodeid.partition("::")[0] in rotation.TENTH_OF
    return 1 if is_costly else CHEAP


def in_order(nodeids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """A key for each test that sorts them into the order in which their groups are dealt, large ones first."""
    sizes = collections.Counter(group_of(nodeid, by_module=True) for nodeid in nodeids)
    return {nodeid: (rank_of(nodeid), -sizes[group_of(nodeid, by_module=True)]) for nodeid in nodeids}


class Together(LoadScopeScheduling):  # type: ignore[misc]  # as above
    """Deals groups to processes in the order of their tests (`in_order`).

    The plugin looks at every test that a process has ever run whenever one ends, and searches its list for each that it
    hands out. With ten thousand tests that takes longer than many of them, and processes wait for it meanwhile.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by their number alone, what starts processes would not begin first
        self._is_by_module = False

    def schedule(self) -> None:
        """Deal, first of all by the number of modules that were collected."""
        if self.collection is None:
            collected: list[str] = next(iter(self.registered_collections.values()))
            modules = {nodeid.partition("::")[0] for nodeid in collected}
            self._is_by_module = len(modules) >= MANY * self.numnodes
        super().schedule()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Note that a test has ended; forget its group when it was the last one."""
        work = self.assigned_work[node]
        super().mark_test_complete(node, item_index, duration)
        group = self._split_scope(self.registered_collections[node][item_index])
        if all(work[group].values()):
            del work[group]

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid, by_module=self._is_by_module)

    def _assign_work_unit(self, node: Any) -> None:
        group, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][group] = tests
        node.send_runtest_some([self._places[nodeid] for nodeid, is_complete in tests.items() if not is_complete])

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """Where each test is in what all processes have collected."""
        return {nodeid: at for at, nodeid in enumerate(self.collection or ())}
