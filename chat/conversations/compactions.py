"""Summaries of a conversation as people handle them: list, read, reword, undo. Every change notifies the open pages.

Whether the user may do it was decided in `auth.py`.
"""

from typing import Any

from django.db import transaction

from chat.conf import chat_settings
from chat.instances.notifications import notify_context_usage
from chat.instances.rows import key_of
from chat.models import AgentInstance
from sessions_app.compactions.services import CompactionView, SummaryAuthor, edit_compaction, undo_compaction
from sessions_app.core.compaction.tokens import counter_named, estimate_messages
from sessions_app.messages.selectors import model_history


@transaction.atomic
def reword(
    instance: AgentInstance, compaction_id: str, summary: str, *, user_id: Any, via: str = "api"
) -> CompactionView:
    """Replace the text of a summary. Errors: `CompactionInvalid`, `CompactionNotFound`."""
    view = edit_compaction(compaction_id, summary, author=SummaryAuthor(user_id=user_id, via=via))
    _notify(instance, view)
    return view


@transaction.atomic
def undo(instance: AgentInstance, compaction_id: str, *, user_id: Any, via: str = "api") -> CompactionView:
    """Have the model read the messages again. Twice is once. Errors: `CompactionNotFound`."""
    view = undo_compaction(compaction_id, author=SummaryAuthor(user_id=user_id, via=via))
    _notify(instance, view)
    return view


def _notify(instance: AgentInstance, view: CompactionView) -> None:
    history = model_history(view.session_id)
    tokens = estimate_messages((message.to_ui() for message in history), counter_named(chat_settings.token_counter))
    notify_context_usage(key_of(instance), view.session_id, tokens, None)
