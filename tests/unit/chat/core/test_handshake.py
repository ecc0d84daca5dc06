"""Connecting and resuming: every row of the protocol's decision tables, and the gate before live chunks."""

import pytest

from chat.core.wire.handshake import (
    Action,
    FailedTurn,
    FinishedTurn,
    Handshake,
    InstanceView,
    MarkSeen,
    RemoveUnstored,
    Replay,
    SendDone,
    SendNone,
    SendPending,
    SendRecovering,
    SendResuming,
    SendTerminal,
    SendTranscript,
    to_frame,
)
from thinkproject.kernel.jsonvalue import JSONObject, load

IDLE = InstanceView()
ACTIVE = InstanceView(active="R")
WAITING = InstanceView(accepted=("R0", "R"))
FAILED = FailedTurn(request_id="F", text="no", message_ids=("u1",))
FAILED_VIEW = InstanceView(terminal=FAILED)
FAILURE = [Replay("F", then_live=False), SendTerminal(FAILED), MarkSeen("F"), RemoveUnstored("F")]


def parked(request_id: str = "R") -> Handshake:
    handshake = Handshake()
    handshake.resume_requested("p", InstanceView(accepted=(request_id,)))
    return handshake


def offered() -> Handshake:
    handshake = Handshake()
    handshake.connected(ACTIVE)
    return handshake


@pytest.mark.parametrize(
    ("view", "actions"),
    [
        (IDLE, [SendTranscript()]),
        (ACTIVE, [SendResuming("R")]),
        (InstanceView(active="R", recovering="R"), [SendResuming("R")]),
        (WAITING, [SendPending("R"), SendTranscript()]),
        (InstanceView(recovering="R"), [SendTranscript(), SendRecovering("R")]),
        (
            InstanceView(accepted=("R",), recovering="R"),
            [SendPending("R"), SendTranscript(), SendRecovering("R")],
        ),
        (FAILED_VIEW, [SendTranscript()]),
    ],
    ids=str,
)
def test_what_a_connection_is_sent_first(view: InstanceView, actions: list[Action]) -> None:
    assert Handshake().connected(view) == actions


@pytest.mark.parametrize(
    ("view", "action"),
    [
        (ACTIVE, SendResuming("R", "p")),
        (InstanceView(active="R", accepted=("Q",), terminal=FAILED), SendResuming("R", "p")),
        (InstanceView(accepted=("K", "R"), continuation="K", terminal=FAILED), SendPending("K", "p")),
        (InstanceView(accepted=("R",), terminal=FAILED), SendResuming("F", "p")),
        (FAILED_VIEW, SendResuming("F", "p")),
        (WAITING, SendPending("R", "p")),
        (IDLE, SendNone("idle", "p")),
    ],
    ids=str,
)
def test_answer_to_a_probe(view: InstanceView, action: Action) -> None:
    assert Handshake().resume_requested("p", view) == [action]


def test_every_probe_is_answered_again() -> None:
    handshake = offered()
    assert handshake.resume_requested("p", ACTIVE) == [SendResuming("R", "p")]
    assert handshake.resume_requested(None, ACTIVE) == [SendResuming("R")]


@pytest.mark.parametrize(
    ("request_id", "view", "actions"),
    [
        ("R", ACTIVE, [Replay("R", then_live=True)]),
        ("R", InstanceView(active="R", recovering="R"), [Replay("R", then_live=True), SendRecovering("R")]),
        ("F", FAILED_VIEW, FAILURE),
        (
            "F",
            InstanceView(finished={"F": FAILED}),
            FAILURE,
        ),
        (
            "D",
            InstanceView(finished={"D": FinishedTurn(request_id="D", message_ids=("u",))}),
            [SendDone("D", ("u",))],
        ),
        ("D", InstanceView(active="R", finished={"D": FinishedTurn(request_id="D")}), [SendDone("D", ())]),
        ("X", IDLE, [SendDone("X")]),
        ("X", ACTIVE, [SendDone("X")]),
        ("R", WAITING, []),
    ],
    ids=str,
)
def test_answer_to_an_acknowledgement(request_id: str, view: InstanceView, actions: list[Action]) -> None:
    assert Handshake().acked(request_id, view) == actions


def test_second_acknowledgement_replays_again() -> None:
    handshake = offered()
    assert handshake.acked("R", ACTIVE) == handshake.acked("R", ACTIVE) == [Replay("R", then_live=True)]


def test_nothing_live_before_the_acknowledgement() -> None:
    handshake = offered()
    assert not handshake.may_get_live("R")
    handshake.acked("R", ACTIVE)
    assert handshake.may_get_live("R")


def test_probe_closes_the_gate_for_one_that_was_there_from_the_start() -> None:
    handshake = Handshake()
    handshake.connected(IDLE)
    assert handshake.stream_started("R") == []
    assert handshake.may_get_live("R")
    handshake.resume_requested("p", ACTIVE)
    assert not handshake.may_get_live("R")


def test_probe_after_the_acknowledgement_leaves_the_gate_open() -> None:
    handshake = offered()
    handshake.acked("R", ACTIVE)
    assert handshake.resume_requested("p", ACTIVE) == [SendResuming("R", "p")]
    assert handshake.may_get_live("R")


def test_gate_of_one_request_does_not_hold_another() -> None:
    assert offered().may_get_live("R2")


def test_waiting_connection_is_offered_the_stream_when_it_starts() -> None:
    handshake = parked()
    was_parked = handshake.is_parked
    assert handshake.stream_started("R") == [SendResuming("R")]
    assert (was_parked, handshake.is_parked) == (True, False)
    assert not handshake.may_get_live("R")
    assert handshake.stream_started("R2") == []


def test_waiting_connection_is_released_when_nothing_is_left() -> None:
    handshake = parked()
    assert handshake.settled("R", IDLE) == [SendNone()]
    assert handshake.settled("R", IDLE) == []


def test_waiting_connection_stays_while_another_turn_waits() -> None:
    handshake = parked()
    assert handshake.settled("R", InstanceView(accepted=("R2",))) == []
    assert handshake.stream_started("R2") == [SendResuming("R2")]


def test_waiting_connection_that_missed_the_start_is_offered_it_late() -> None:
    assert parked().settled("R0", ACTIVE) == [SendResuming("R")]


def test_acknowledgement_of_a_waiting_request_parks() -> None:
    handshake = Handshake()
    handshake.acked("R", WAITING)
    assert handshake.stream_started("R") == [SendResuming("R")]


def test_a_connection_that_never_waited_receives_nothing_at_the_end() -> None:
    assert offered().settled("R", IDLE) == []


def test_offer_of_a_failed_turn_waits_for_nothing() -> None:
    handshake = Handshake()
    handshake.resume_requested("p", InstanceView(accepted=("R",), terminal=FAILED))
    assert handshake.stream_started("R") == []
    assert handshake.may_get_live("R")


def test_clear_closes_the_gate_for_good() -> None:
    handshake = Handshake()
    assert handshake.cleared(["R", "Q"]) == []
    handshake.settled("R", IDLE)
    assert [handshake.may_get_live(request_id) for request_id in ("R", "Q", "N")] == [False, False, True]


def test_clear_releases_a_waiting_connection() -> None:
    handshake = parked()
    assert handshake.cleared(["R"]) == [SendNone()]
    assert handshake.cleared([]) == []


def test_requests_after_a_clear_are_live() -> None:
    handshake = offered()
    handshake.cleared(["R"])
    assert handshake.may_get_live("R2")
    assert handshake.resume_requested("p", IDLE) == [SendNone("idle", "p")]


RESPONSE = {"type": "cf_agent_use_chat_response"}


@pytest.mark.parametrize(
    ("action", "frame"),
    [
        (SendResuming("R"), {"type": "cf_agent_stream_resuming", "id": "R"}),
        (SendResuming("R", "p"), {"type": "cf_agent_stream_resuming", "id": "R", "probeId": "p"}),
        (SendPending("R"), {"type": "cf_agent_stream_pending", "id": "R"}),
        (SendPending("R", "p"), {"type": "cf_agent_stream_pending", "id": "R", "probeId": "p"}),
        (SendNone(), {"type": "cf_agent_stream_resume_none"}),
        (SendNone("idle", "p"), {"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"}),
        (SendNone("idle"), {"type": "cf_agent_stream_resume_none", "reason": "idle"}),
        (SendRecovering("R"), {"type": "cf_agent_chat_recovering", "recovering": True, "id": "R"}),
        (
            SendTerminal(FAILED),
            {**RESPONSE, "id": "F", "body": "no", "done": True, "error": True, "messageIds": ["u1"]},
        ),
        (
            SendTerminal(FailedTurn(request_id="F", text="no")),
            {**RESPONSE, "id": "F", "body": "no", "done": True, "error": True},
        ),
        (SendDone("R"), {**RESPONSE, "id": "R", "body": "", "done": True, "replay": True}),
        (
            SendDone("R", ("u",)),
            {**RESPONSE, "id": "R", "body": "", "done": True, "replay": True, "messageIds": ["u"]},
        ),
    ],
    ids=str,
)
def test_exact_frames(action: Action, frame: JSONObject) -> None:
    assert load(to_frame(action) or "") == frame


@pytest.mark.parametrize(
    "action", [SendTranscript(), Replay("R", then_live=True), MarkSeen("R"), RemoveUnstored("R")], ids=str
)
def test_actions_that_need_more_than_a_frame(action: Action) -> None:
    assert to_frame(action) is None


def test_who_waits_for_the_answers_of_others_is_not_released_by_the_end_of_the_turn_that_asked() -> None:
    handshake = Handshake()
    assert handshake.wait_for_answers("p") == [SendPending(None, "p")]
    assert handshake.settled("R0", IDLE) == []
    assert handshake.stream_started("K") == [SendResuming("K")]
    assert not handshake.may_get_live("K")
    assert handshake.settled("K", IDLE) == []


def test_a_clear_releases_who_waits_for_the_answers_of_others() -> None:
    handshake = Handshake()
    handshake.wait_for_answers("p")
    assert handshake.cleared([]) == [SendNone()]
    assert handshake.settled("R", IDLE) == []
