"""The page of the admin that adds the servers of a pasted configuration to the site, programs among them.

Values of its variables are entered here; none is taken from the environment of the server.
"""

from collections.abc import Sequence
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin.base import PageAdmin
from chat.admin.columns import Text
from chat.mcp_servers.changes import import_servers
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate
from tools_app.core.mcp.configurations import MAX_CHARS
from tools_app.core.mcp.servers import MAX_SECRET_CHARS
from tools_app.core.mcp.variables import Variable
from tools_app.mcp.pasting import PastedState, Proposed, propose
from tools_app.mcp.rows import Place

SITE: Final = Place(is_site=True)
PREFIX: Final = "value:"
STATE_WORDS: Final[dict[PastedState, Text]] = {
    PastedState.NEW: _("It is added."),
    PastedState.INCOMPLETE: _("It is added once its values are filled in."),
    PastedState.EXISTS: _("It is there already."),
    PastedState.REFUSED: _("It cannot be added."),
    PastedState.ADDED: _("It was added."),
}


class PasteForm(forms.Form):
    """The text, and a field for each variable that a preview found in it."""

    text = forms.CharField(
        label=_("Configuration"),
        max_length=MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false", "dir": "ltr", "class": "vLargeTextField"}),
        help_text=_("A file with mcpServers, as Claude and others have it, or with servers, as VS Code has it."),
    )

    def add_variables(self, variables: Sequence[Variable]) -> None:
        """Ask for these values. Secrets are not shown again."""
        for variable in variables:
            widget: forms.Widget = forms.TextInput(attrs={"size": 80})
            if variable.options:
                widget = forms.Select(choices=[("", "---------"), *((each, each) for each in variable.options)])
            elif variable.is_secret:
                widget = forms.PasswordInput(attrs={"size": 80, "autocomplete": "new-password"}, render_value=False)
            self.fields[PREFIX + variable.key] = field = forms.CharField(
                label=variable.key.removeprefix("input:"),
                required=False,
                strip=False,
                max_length=MAX_SECRET_CHARS,
                widget=widget,
            )
            field.help_text = " ".join(part for part in (variable.description, _default(variable)) if part)


class McpPasting:
    """The view, for the admin of MCP servers."""

    def __init__(self, admin: PageAdmin) -> None:
        self.admin = admin

    def urls(self) -> list[URLPattern]:
        """Its address."""
        return [path("paste/", self.admin.admin_site.admin_view(self.view), name="think_tools_mcpserver_paste")]

    def view(self, request: HttpRequest) -> HttpResponse:
        """Show what a configuration would add; add it when that is confirmed."""
        if not self.admin.has_add_permission(request):
            raise PermissionDenied
        form = PasteForm(request.POST if request.method == "POST" else None)
        found: list[Proposed] = []
        chosen = frozenset(request.POST.getlist("names"))
        if form.is_bound and form.is_valid():
            text, values = form.cleaned_data["text"], _values(request)
            try:
                found = propose(text, SITE, values, allows_programs=True)
                if "confirm" in request.POST and not _lacks(found, chosen):
                    done = import_servers(
                        text, SITE, values, names=chosen, user_id=request.user.pk, allows_programs=True
                    )
                    return self._added(request, done)
            except ThinkError as error:
                form.add_error(None, translate(error.phrase))
            form.add_variables(_variables(found))
            if "confirm" in request.POST and _lacks(found, chosen):
                form.add_error(None, _("Fill in the values of the chosen servers; secrets once more."))
        is_first = "confirm" not in request.POST
        rows = [_row(each, is_chosen=is_first or each.pasted.name in chosen) for each in found]
        return self.admin.page(
            request,
            "paste",
            title=str(_("Paste a configuration")),
            form=form,
            proposed=rows,
            can_confirm=any(row["can_add"] for row in rows),
            back=reverse("admin:think_tools_mcpserver_changelist"),
        )

    def _added(self, request: HttpRequest, done: Sequence[Proposed]) -> HttpResponse:
        added = [each.server for each in done if each.state is PastedState.ADDED and each.server is not None]
        for server in added:
            self.admin.log_addition(request, server, str(_("Added from a pasted configuration.")))
        text = ngettext("%(count)d server was added.", "%(count)d servers were added.", len(added))
        self.admin.message_user(request, text % {"count": len(added)}, messages.SUCCESS if added else messages.WARNING)
        return HttpResponseRedirect(reverse("admin:think_tools_mcpserver_changelist"))


def _values(request: HttpRequest) -> dict[str, str]:
    return {
        name.removeprefix(PREFIX): str(value)[:MAX_SECRET_CHARS]
        for name, value in request.POST.items()
        if name.startswith(PREFIX)
    }


def _lacks(found: Sequence[Proposed], chosen: frozenset[str]) -> bool:
    return any(each.state is PastedState.INCOMPLETE and each.pasted.name in chosen for each in found)


def _variables(found: Sequence[Proposed]) -> list[Variable]:
    usable = (each for each in found if each.state in {PastedState.NEW, PastedState.INCOMPLETE})
    return list({variable.key: variable for each in usable for variable in each.variables}.values())


def _default(variable: Variable) -> str:
    return "" if not variable.default else str(_("Otherwise: %(value)s")) % {"value": variable.default}


def _row(proposed: Proposed, *, is_chosen: bool) -> dict[str, Any]:
    pasted = proposed.pasted
    notes = [translate(proposed.reason)] if proposed.reason else []
    if proposed.missing:
        names = ", ".join(key.removeprefix("input:") for key in proposed.missing)
        notes.append(str(_("Missing: %(names)s")) % {"names": names})
    if proposed.exposes:
        notes.append(str(_("A secret becomes a part of the address, which is not stored encrypted.")))
    if pasted.ignored:
        notes.append(str(_("Without effect here: %(names)s")) % {"names": ", ".join(pasted.ignored)})
    if not pasted.is_enabled:
        notes.append(str(_("It is disabled.")))
    can_add = proposed.state in {PastedState.NEW, PastedState.INCOMPLETE}
    return {
        "name": pasted.name,
        "address": " ".join(pasted.command) or pasted.url,
        "words": STATE_WORDS[proposed.state],
        "notes": notes,
        "can_add": can_add,
        "is_chosen": can_add and is_chosen,
    }
