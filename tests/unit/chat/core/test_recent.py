"""Memory of a connection: what was added last, and no more."""

from chat.core.wire.handshake import Handshake, InstanceView
from chat.core.wire.recent_set import KEPT, RecentSet


def test_the_newest_members_are_kept() -> None:
    recent = RecentSet[int](3)
    recent.update([1, 2, 3])
    recent.add(1)
    recent.add(4)
    assert list(recent) == [3, 1, 4]
    recent.discard(3, 5)
    assert (len(recent), 3 in recent, 4 in recent) == (2, False, True)


def test_a_handshake_does_not_grow_with_the_turns_of_its_connection() -> None:
    handshake = Handshake()
    for number in range(3 * KEPT):
        view = InstanceView(active=f"r{number}")
        handshake.resume_requested(None, view)
        handshake.acked(f"r{number}", view)
        handshake.cleared([f"r{number}"])
    members = [value for value in vars(handshake).values() if isinstance(value, RecentSet)]
    assert len(members) == 3
    assert all(len(each) <= KEPT for each in members)
    assert not handshake.may_get_live(f"r{3 * KEPT - 1}")
