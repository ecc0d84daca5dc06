"""Columns and fields of turns, in the words of people. Which exact request a model was sent stands in the detail."""

import json
from collections.abc import Iterable

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import Text, agent_title, linked, noted, shortened, title_of, tokens, turn_state
from chat.models import Turn, TurnTrigger
from chat.reads.provider_requests import ProviderRequest, provider_requests
from chat.turns.state.sent_requests import sent_before
from fibers.admin import waits_text
from fibers.models import FiberStep
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.read_only_admin import NOTHING, amount, column, moment

TRIGGER_WORDS: dict[str, Text] = {
    TurnTrigger.SUBMIT: _("A message"),
    TurnTrigger.REGENERATE: _("Asked again"),
    TurnTrigger.CONTINUE: _("Went on by itself"),
    TurnTrigger.EDIT: _("An edited message"),
    TurnTrigger.PROGRAM: _("Your code"),
}


class TurnColumns(ActionAdmin):
    """The shown facts of a turn."""

    @admin.display(description=_("turn of"), ordering="id")
    def title(self, turn: Turn) -> str:
        """The conversation's title and the turn's place in it."""
        title = title_of(turn.instance, reads=turn.reads)  # type: ignore[attr-defined] # annotated
        return noted(f"{title} · {turn.position}", TRIGGER_WORDS[turn.trigger])

    @override
    def page_title(self, turn: Turn) -> str:
        """The conversation's title and the turn's place in it."""
        title = title_of(turn.instance, reads=turn.reads)  # type: ignore[attr-defined] # annotated
        return str(_("Turn %(position)d of “%(title)s”")) % {"position": turn.position, "title": title}

    people = column(
        _("owner, agent"), lambda turn: noted(str(turn.instance.owner or NOTHING), agent_title(turn.instance.agent))
    )

    @admin.display(description=_("status"), ordering="fiber__status")
    def status(self, turn: Turn) -> str:
        """The fiber's status, in words, with the error's code."""
        asked = vars(turn)["is_asked"]
        return turn_state(turn.fiber.status, turn.fiber.reason, turn.error_code, is_asked=asked)

    asked = column(_("asked for by"), lambda turn: str(TRIGGER_WORDS[turn.trigger]), ordering="trigger")

    @admin.display(description=_("model"), ordering="model_name")
    def by_model(self, turn: Turn) -> str:
        """The model without its provider, and its tokens; the detail has the whole name."""
        name = shortened(turn.model_name.rpartition("/")[2], 28) or NOTHING
        return noted(
            name, tokens(turn.input_tokens, turn.output_tokens) if turn.step_count or turn.input_tokens else ""
        )

    @admin.display(description=_("models"))
    def models_shown(self, turn: Turn) -> str:
        """The models of a turn that more than one answered, with the cost of each, and why the next one was asked."""
        report = turn.model_report or {}
        used = [f"{each['name']}: {each['tokens']:,}, {amount(each['cost'])}" for each in report.get("models", ())]
        switched = [f"{each['from']} → {each['to']} ({each['code']})" for each in report.get("switches", ())]
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in (*used, *switched))) or NOTHING

    @admin.display(description=_("tokens"))
    def used(self, turn: Turn) -> str:
        """Tokens in and out, and what of them was reasoning or cached."""
        more = _("%(reasoning)s of reasoning, %(cached)s from a cache")
        rest = str(more) % {"reasoning": f"{turn.reasoning_tokens:,}", "cached": f"{turn.cached_tokens:,}"}
        return f"{tokens(turn.input_tokens, turn.output_tokens)}; {rest}"

    spent = column(_("cost"), lambda turn: amount(turn.cost), ordering="cost")

    @admin.display(description=_("accepted"), ordering="accepted_at")
    def accepted(self, turn: Turn) -> str:
        """When it was accepted, and how long it took."""
        took = duration_of(turn)
        return noted(moment(turn.accepted_at), str(_("took %(time)s")) % {"time": took} if took else "")

    error = column(
        _("error"),
        lambda turn: f"{turn.error_code}: {turn.error_text}" if turn.error_code or turn.error_text else NOTHING,
    )
    journal = column(
        _("journal"), lambda turn: _folds((_step_title(step), _without_request(step)) for step in _steps(turn))
    )
    waits = column(_("waits for"), lambda turn: waits_text(turn.fiber))

    @admin.display(description=_("attempts"))
    def attempts(self, turn: Turn) -> str:
        """Number of attempts by workers."""
        fiber = turn.fiber
        text = _("%(attempts)d, of them %(retries)d after an error and %(recoveries)d after a crash")
        return str(text) % {"attempts": fiber.attempt, "retries": fiber.retries, "recoveries": fiber.recoveries}

    @admin.display(description=_("conversation"))
    def conversation(self, turn: Turn) -> str:
        """Link to the conversation, at the answer."""
        title = title_of(turn.instance, reads=turn.reads)  # type: ignore[attr-defined] # annotated
        return linked("think_chat_agentinstance", turn.instance_id, title)

    history_link = column(_("history"), lambda turn: linked("think_sessions_session", turn.session_id, turn.session_id))
    fiber_link = column(_("fiber"), lambda turn: linked("think_fibers_fiber", turn.fiber_id, turn.fiber_id))

    @admin.display(description=_("times"))
    def times(self, turn: Turn) -> str:
        """When it began and ended."""
        items = [(_("began"), moment(turn.started_at)), (_("ended"), moment(turn.finished_at))]
        return format_html_join(", ", "{} {}", items)

    @admin.display(description=_("requests to the model"))
    def requests(self, turn: Turn) -> str:
        """The requests sent to the provider, step by step, without credentials."""
        records = list(_steps(turn).values_list("step_key", "value"))
        found = provider_requests(records, sent_before(turn.session_id, turn.position, records))
        return _folds((_request_title(request), request.body) for request in found)


def duration_of(turn: Turn) -> str:
    """The time that a turn took, in words; empty while it runs."""
    if turn.started_at is None or turn.finished_at is None:
        return ""
    return str(_("%(seconds).1f s")) % {"seconds": (turn.finished_at - turn.started_at).total_seconds()}


def _steps(turn: Turn) -> QuerySet[FiberStep]:
    return FiberStep.objects.filter(fiber_id=turn.fiber_id).order_by("pk")


def _step_title(step: FiberStep) -> str:
    return str(_("%(step)s, attempt %(attempt)d")) % {"step": step.step_key, "attempt": step.attempt}


def _without_request(step: FiberStep) -> JSONValue:
    value = step.value
    return {key: item for key, item in value.items() if key != "request"} if isinstance(value, dict) else value


def _request_title(request: ProviderRequest) -> str:
    note = "" if request.is_exact else str(_(" · incomplete: the hash differs"))
    return f"{request.step_key} · {request.body.get('model', '')}{note}"


def _folds(items: Iterable[tuple[str, JSONValue]]) -> SafeString | str:
    rows = [(title, json.dumps(value, indent=2, ensure_ascii=True)) for title, value in items]
    if not rows:
        return NOTHING
    fold = '<details><summary>{}</summary><pre class="think-block" tabindex="0">{}</pre></details>'
    return format_html_join("", fold, rows)
