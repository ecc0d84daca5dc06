"""Admin of context: summaries, blocks and entries, and the history of changes.

Texts are edited here and nothing else; every change goes through the same services as everywhere, so limits hold and
the history says which member of the staff it was.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from sessions_app.admin.confirming import confirmation
from sessions_app.admin.words import ACTION_WORDS, VIA_WORDS, worded
from sessions_app.compactions.services import SummaryAuthor, check_summary, edit_compaction, undo_compaction
from sessions_app.context.history import ContextActor, ContextOwner, block_subject, entry_subject
from sessions_app.context.store import delete_entry, forget, put_entry, write_text
from sessions_app.core.context.context_blocks import Entry, check_content, check_text
from sessions_app.errors import ContextInvalid
from sessions_app.models import Compaction, ContextBlock, ContextChange, ContextEntry
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import fingerprint
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyAdmin, choice_filter, column, moment

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm

HISTORY_SHOWN = 20
_OWNER = f"=owner__{get_user_model().USERNAME_FIELD}"
_CHANGED = _("The text has changed since this page was opened. Reload it, then make your change again.")


UndoneFilter = choice_filter(
    _("state"), "undone", {"0": (_("Read"), Q(undone_at=None)), "1": (_("Undone"), Q(undone_at__isnull=False))}
)


HolderFilter = choice_filter(
    _("read in"),
    "of",
    {
        "person": (_("All conversations of a person"), Q(session=None)),
        "session": (_("One conversation"), Q(session__isnull=False)),
    },
)


class TextForm(_Form):
    """Edits one text of a row; refused if the text changed since the form was shown."""

    text_field = "content"
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.held = str(getattr(self.instance, self.text_field))
        self.initial["seen"] = fingerprint(self.held)
        if self.text_field in self.fields:
            self.fields[self.text_field].strip = False  # type: ignore[attr-defined] # a text area is a CharField

    @override
    def clean(self) -> dict[str, Any] | None:
        data = super().clean()
        if self.cleaned_data.get("seen") != fingerprint(self.held):
            raise forms.ValidationError(_CHANGED)
        if self.text_field in self.cleaned_data:
            text = self.cleaned_data[self.text_field].replace("\r\n", "\n")  # browsers send those
            self.cleaned_data[self.text_field] = text
            try:
                self.check_text(text)
            except ThinkError as error:
                self.add_error(self.text_field, error.message)
        return data

    def check_text(self, text: str) -> None:
        """Look at the new text. Errors: `ThinkError`."""
        raise NotImplementedError


class SummaryEditForm(TextForm):
    """The summary of a compaction."""

    text_field = "summary"

    @override
    def check_text(self, text: str) -> None:
        check_summary(text)


class BlockForm(TextForm):
    """The text of a block, within its limit."""

    @override
    def check_text(self, text: str) -> None:
        check_content(self.instance.label, text, self.instance.max_tokens, held=self.held)


class EntryForm(TextForm):
    """An entry."""

    @override
    def check_text(self, text: str) -> None:
        check_content(self.instance.label, text, None, held=self.held)
        for name in ("title", "description"):
            check_text(f"The {name}", self.cleaned_data.get(name, ""))


class TextAdmin(ReadOnlyAdmin):
    """Rows with a text that those may edit who hold Django's change permission. Saving is a service's business."""

    can_delete = True

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    @override
    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Show the hidden field only to users who may edit."""
        fields = list(super().get_fields(request, obj))
        return fields if self.has_change_permission(request, obj) else [name for name in fields if name != "seen"]

    @override
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Report a refusal by the service after the form was valid: the row was changed meanwhile."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except ThinkError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(request.path)

    @override
    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except ThinkError as error:
            self.message_user(request, error.message, messages.ERROR)
            return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))

    @override
    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, int], set[str], list[Any]]:
        names = [self.name_deleted(row) for row in objs]
        return names, {self.opts.verbose_name_plural: len(names)}, set(), []

    def name_deleted(self, row: Any) -> str:
        """A row's description on the confirmation page."""
        return str(row)

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete one after the other: each has a history."""
        for row in queryset:
            self.delete_model(request, row)

    @admin.display(description=_("of"))
    def holder(self, row: Any) -> str:
        """The session or the person that it belongs to."""
        if row.session_id is None:
            return str(row.owner)
        return format_html('<a href="{}">{}</a>', session_url(row.session_id), self.session_name(row))

    def session_name(self, row: Any) -> str:
        """The name of a history. The chat gives the conversation's title."""
        return str(row.session)

    shared = column(
        _("read in"),
        lambda row: str(_("All conversations of a person")) if row.session_id is None else str(_("One conversation")),
    )
    updated = column(_("changed"), lambda row: moment(row.updated_at), ordering="updated_at")

    def history_of(self, row: Any, *subjects: str) -> SafeString:
        """The newest changes of a row, as a table that can be read."""
        rows = ContextChange.objects.filter(session_id=row.session_id, owner_id=getattr(row, "owner_id", None))
        found = rows.filter(subject__in=subjects).select_related("actor").order_by("-pk")[: HISTORY_SHOWN + 1]
        changes = [
            {"row": row, "action": worded(row.action, ACTION_WORDS), "via": worded(row.via, VIA_WORDS)}
            for row in found[:HISTORY_SHOWN]
        ]
        context = {"changes": changes, "has_more": len(found) > HISTORY_SHOWN}
        return render_to_string("admin/think_sessions/history.html", context)


class CompactionAdmin(TextAdmin):
    """Summaries that stand for stretches of a conversation; a changed one is marked as edited."""

    form = SummaryEditForm
    list_display = ("beginning", "conversation", "standing", "trigger", "message_count", "saved", "created")
    list_filter = (UndoneFilter, "trigger", "created_at")
    list_select_related = ("session",)
    search_fields = ("=id", "=session__id")
    search_help_text = _("The exact id of a summary or of a history.")
    ordering = ("-created_at", "-id")
    readonly_fields = (
        *("in_session", "standing", "trigger", "model_name", "message_count", "saved", "created_by", "created_at"),
        *("edited_at", "undone_at", "history", "id", "first_id", "last_id"),
    )
    fields = ("summary", "seen", *readonly_fields)
    actions = ("undo",)
    can_delete = False

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Compaction]:
        """Read only the beginnings of summaries for a list."""
        rows: QuerySet[Compaction] = super().get_queryset(request)
        return rows.annotate(start=Substr("summary", 1, 200)).defer("summary") if is_list(request) else rows

    beginning = column(_("summary"), lambda row: _begun(vars(row).get("start") or ""))

    @override
    def page_title(self, row: Compaction) -> str:
        return _begun(row.summary)

    @admin.display(description=_("conversation"))
    def conversation(self, row: Compaction) -> str:
        """The conversation that it is a summary of."""
        return self.conversation_of(row)

    def conversation_of(self, row: Compaction) -> str:
        """The name of the history. The chat gives the conversation's title."""
        return str(row.session)

    @admin.display(description=_("state"))
    def standing(self, row: Compaction) -> str:
        """Whether models read it, and whether a person changed it."""
        if row.undone_at is not None:
            return str(_("Undone"))
        return str(_("Read, edited")) if row.edited_at is not None else str(_("Read"))

    @admin.display(description=_("tokens"))
    def saved(self, row: Compaction) -> str:
        """Tokens that models were sent before, and after."""
        before, after = f"{row.tokens_before:,}", f"{row.tokens_after:,}"
        return str(_("%(before)s before, %(after)s after")) % {"before": before, "after": after}

    created = column(_("written"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("read it"))
    def in_session(self, row: Compaction) -> str:
        """Link to where it stands in the conversation."""
        url = f"{session_url(row.session_id)}#{row.id}"
        return format_html('<a href="{}">{}</a>', url, _("In its place"))

    @admin.display(description=_("history"))
    def history(self, row: Compaction) -> str:
        """The author of the change."""
        return self.history_of(row, f"compaction:{row.id}")

    @override
    def save_model(self, request: HttpRequest, obj: Compaction, form: Any, change: bool) -> None:
        self.reword(obj, form.cleaned_data["summary"], SummaryAuthor(user_id=_user_id(request), via="admin"))

    @admin.action(description=_("Undo: models read the messages again"), permissions=["change"])
    def undo(self, request: HttpRequest, queryset: QuerySet[Compaction]) -> None:
        """Undo the selected ones that are not undone yet."""
        rows = list(queryset.filter(undone_at=None))
        for row in rows:
            self.take_back(row, SummaryAuthor(user_id=_user_id(request), via="admin"))
        self.message_user(request, str(_("%(count)d undone.")) % {"count": len(rows)}, messages.SUCCESS)

    def reword(self, row: Compaction, summary: str, author: SummaryAuthor) -> None:
        """Store a summary's new text."""
        edit_compaction(row.pk, summary, author=author)

    def take_back(self, row: Compaction, author: SummaryAuthor) -> None:
        """Undo a compaction."""
        undo_compaction(row.pk, author=author)


class BlockAdmin(TextAdmin):
    """Texts in system prompts, of sessions and of people."""

    form = BlockForm
    list_display = ("label", "holder", "shared", "standing", "max_tokens", "updated")
    list_filter = (HolderFilter, "updated_at")
    list_select_related = ("owner", "session")
    search_fields = ("=label", "=session__id", _OWNER)
    search_help_text = _("The exact label, session or owner.")
    ordering = ("-pk",)
    readonly_fields = (
        *("label", "holder", "description", "max_tokens", "is_runtime", "is_removed"),
        *("entries", "updated_at", "history"),
    )
    fields = ("content", "seen", *readonly_fields)
    actions = ("forget_wholly",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ContextBlock]:
        """Leave the texts to the pages of single blocks."""
        rows: QuerySet[ContextBlock] = super().get_queryset(request)
        return rows.defer("content") if is_list(request) else rows

    @admin.display(description=_("state"))
    def standing(self, row: ContextBlock) -> str:
        """Whether models read it, and whether it was added while the agent ran."""
        if row.is_removed:
            return str(_("Removed"))
        return str(_("Added by the agent")) if row.is_runtime else str(_("In use"))

    @admin.display(description=_("entries"))
    def entries(self, row: ContextBlock) -> str:
        """Link to the documents under the same label."""
        whose = f"session__id__exact={row.session_id}" if row.session_id else f"owner__id__exact={row.owner_id}"
        url = reverse("admin:think_sessions_contextentry_changelist")
        return format_html('<a href="{}?{}&label__exact={}">{}</a>', url, whose, row.label, _("entries"))

    @admin.display(description=_("history"))
    def history(self, row: ContextBlock) -> str:
        """The author of the change."""
        return self.history_of(row, block_subject(row.label))

    @override
    def save_model(self, request: HttpRequest, obj: ContextBlock, form: Any, change: bool) -> None:
        write_text(_holder_of(obj), obj.label, _replacing(form.held, form.cleaned_data["content"]), by=_by(request))

    @admin.action(description=_("Delete, and take the texts out of the history"), permissions=["delete"])
    def forget_wholly(self, request: HttpRequest, queryset: QuerySet[ContextBlock]) -> HttpResponse | None:
        """Clear the selected blocks and their earlier texts; authors and times of changes stay."""
        chosen = list(queryset.defer(None))
        asking = confirmation(
            self,
            request,
            action="forget_wholly",
            title=_("Delete these blocks, and their earlier texts?"),
            consequence=_(
                "The texts and their whole history go. Who changed them and when is kept. This cannot be undone."
            ),
            rows=[(row.pk, self.name_deleted(row)) for row in chosen],
            button=_("Delete"),
        )
        if asking is not None:
            return asking
        for row in chosen:
            forget(_holder_of(row), row.label, erases_history=True, by=_by(request))
        self.message_user(request, str(_("%(count)d forgotten.")) % {"count": len(chosen)}, messages.SUCCESS)
        return None

    @override
    def name_deleted(self, row: ContextBlock) -> str:
        """Its entries go with it."""
        count = ContextEntry.objects.filter(**_holder_of(row).row, label=row.label).count()
        text = ngettext(
            "%(label)s of %(holder)s, with %(count)d entry", "%(label)s of %(holder)s, with %(count)d entries", count
        )
        return text % {"label": row.label, "holder": row.session or row.owner, "count": count}

    @override
    def delete_model(self, request: HttpRequest, obj: ContextBlock) -> None:
        """Forget the text and the entries under its label."""
        forget(_holder_of(obj), obj.label, by=_by(request))


class EntryAdmin(TextAdmin):
    """Documents under context blocks: skills that are loaded, entries that are searched."""

    form = EntryForm
    list_display = ("name", "label", "holder", "shared", "updated")
    list_filter = (HolderFilter, "updated_at")
    list_select_related = ("owner", "session")
    search_fields = ("=key", "=label", "=session__id", _OWNER)
    search_help_text = _("The exact key, label, session or owner.")
    ordering = ("-pk",)
    readonly_fields = ("key", "label", "holder", "updated_at", "history")

    name = column(_("entry"), lambda row: row.title or row.key, ordering="key")

    fields = ("title", "description", "content", "seen", *readonly_fields)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ContextEntry]:
        """Leave the texts to the pages of single entries."""
        rows: QuerySet[ContextEntry] = super().get_queryset(request)
        return rows.defer("content") if is_list(request) else rows

    @admin.display(description=_("history"))
    def history(self, row: ContextEntry) -> str:
        """The author of the change."""
        return self.history_of(row, entry_subject(row.label, row.key))

    @override
    def save_model(self, request: HttpRequest, obj: ContextEntry, form: Any, change: bool) -> None:
        data = form.cleaned_data
        entry = Entry(key=obj.key, content=data["content"], title=data["title"], description=data["description"])
        put_entry(_holder_of(obj), obj.label, entry, by=_by(request))

    @override
    def delete_model(self, request: HttpRequest, obj: ContextEntry) -> None:
        delete_entry(_holder_of(obj), obj.label, obj.key, by=_by(request))


def _begun(text: str) -> str:
    return Truncator(" ".join(text.split())).chars(90) or NOTHING


def _replacing(held: str, text: str) -> Any:
    def change(now: str) -> str:
        if now != held:
            raise ContextInvalid(str(_CHANGED))
        return text

    return change


def session_url(session_id: str) -> str:
    """The page of a history."""
    return reverse("admin:think_sessions_session_change", args=[session_id])


def _holder_of(row: ContextBlock | ContextEntry) -> ContextOwner:
    return ContextOwner(session_id=row.session_id, owner_id=row.owner_id)


def _by(request: HttpRequest) -> ContextActor:
    return ContextActor(via="admin", user_id=_user_id(request))


def _user_id(request: HttpRequest) -> int | None:
    return request.user.pk


def is_list(request: HttpRequest) -> bool:
    """Whether a list is asked for, not the page of one row."""
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith("_changelist")
