"""Links that decide one question, for notifications and letters that a developer sends.

A link is signed, names one question, one decision, one person and the arguments that were asked about, and expires. It
holds no right: the person signs in, and may answer or not by the roles and the rule of the agent's class as anywhere.
A question is decided once, so a link works once.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.core import signing
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from chat.errors import CallChanged, CallDecided, DecisionLinkInvalid, InputInvalid
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.tool_answers import Reply, require_may_answer
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.services import Actor
from tools_app.core.questions import question_of, title_of
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

MAX_HOURS: Final = 7 * 24
VIA: Final = "link"
_SALT: Final = "think.decision_link"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedDecision:
    """The decision of a link, for the page that asks for a confirmation."""

    approves: bool
    tool_title: str
    sentence: str
    arguments: JSONObject
    instance: AgentInstance
    row: ToolCallRecord
    expires_at: float


def make_token(row: ToolCallRecord, *, approves: bool, user_id: Any, hours: float) -> str:
    """The secret part of a link's address. Units: `hours` until it expires, at most `MAX_HOURS`.

    Errors: `CallDecided` for a question that is over; `InputInvalid` for other hours, and where a person has to choose.
    """
    if not 0 < hours <= MAX_HOURS:
        raise InputInvalid(Phrase("A link works for at most {limit} hours.", limit=MAX_HOURS))
    if not _is_open(row):
        raise CallDecided
    if approves and question_of(row.question).choices:
        raise InputInvalid("This question has choices: no link can answer it.")
    facts = {
        "call": row.pk,
        "question": row.approval_id,
        "approves": approves,
        "arguments": fingerprint(row.input),
        "user": str(user_id),
        "until": int(timezone.now().timestamp() + hours * 3600),
    }
    return signing.dumps(facts, salt=_SALT, compress=True)


def path_of(token: str) -> str:
    """The path of a link. Errors: `InputInvalid` on a site without the page."""
    try:
        return reverse("chat:decide", args=[token])
    except NoReverseMatch as error:
        raise InputInvalid("This site has no page on which a link could decide.") from error


def read_link(token: str, user_id: Any) -> LinkedDecision:
    """The decision that a link would take now, for the person who is signed in. Changes nothing.

    Errors: `DecisionLinkInvalid` for one that is forged, expired, another person's or about nothing that is there;
    `CallDecided` and `CallChanged` where it is too late; `RoleNeeded`, `AnswerDenied` as anywhere.
    """
    try:
        facts: Any = signing.loads(token, salt=_SALT)
    except signing.BadSignature as error:
        raise DecisionLinkInvalid from error
    if facts["user"] != str(user_id) or facts["until"] <= timezone.now().timestamp():
        raise DecisionLinkInvalid
    row = ToolCallRecord.objects.filter(pk=facts["call"], approval_id=facts["question"]).first()
    instance = None if row is None else AgentInstance.objects.filter(pk=row.scope).first()
    if row is None or instance is None:
        raise DecisionLinkInvalid
    require_may_answer(instance, row, Actor(user_id=user_id, via=VIA))
    if not _is_open(row):
        raise CallDecided
    if fingerprint(row.input) != facts["arguments"]:
        raise CallChanged
    question = question_of(row.question)
    return LinkedDecision(
        approves=facts["approves"],
        tool_title=title_of(row.tool_name, question.title),
        sentence=question.sentence,
        arguments=row.input,
        instance=instance,
        row=row,
        expires_at=facts["until"],
    )


def use_link(token: str, user_id: Any) -> LinkedDecision:
    """Decide. Durability: as `reply_to_call`; of two that use it at once the first counts. Errors: as `read_link`."""
    found = read_link(token, user_id)
    reply = Reply(
        call_id=found.row.call_id,
        approval_id=found.row.approval_id,
        is_approved=found.approves,
        input_hash=fingerprint(found.arguments),
    )
    if not reply_to_call(key_of(found.instance), reply, Actor(user_id=user_id, via=VIA)).is_new:
        raise CallDecided
    return found


def _is_open(row: ToolCallRecord) -> bool:
    return row.status == CallStatus.ASKED and (row.expires_at is None or row.expires_at > timezone.now())
