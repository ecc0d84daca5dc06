"""MCP servers in the admin: those of the site are added and changed here, programs among them.

Servers of people and of conversations are looked after, and one issuer may be allowed for their sign-ins.
Headers, variables and secrets are written and never shown again.
"""

import shlex
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import PageAdmin
from chat.admin.columns import Text, noted, state
from chat.admin.tools.mcp_pasting import McpPasting
from chat.mcp_servers.changes import connect_soon
from thinkproject.kernel.languages import translate
from thinkproject.kernel.read_only_admin import NOTHING, choice_filter, column, moment
from tools_app.core.mcp.servers import McpScope, McpServerSpec, McpState
from tools_app.errors import McpServerInvalid
from tools_app.mcp import rows, selectors
from tools_app.models import McpServer

if TYPE_CHECKING:
    _Form = forms.ModelForm[McpServer]
else:
    _Form = forms.ModelForm

STATE_WORDS: Final[dict[str, tuple[str, Text]]] = {
    McpState.NOT_CONNECTED: ("pending", _("Not connected")),
    McpState.CONNECTING: ("running", _("Connecting")),
    McpState.AUTHENTICATING: ("asked", _("People sign in")),
    McpState.READY: ("completed", _("Ready")),
    McpState.FAILED: ("error", _("Failed")),
}
"""Colour and words of each state."""

SCOPE_WORDS: Final[dict[str, Text]] = {
    McpScope.SITE: _("Everybody"),
    McpScope.USER: _("One person"),
    McpScope.INSTANCE: _("One conversation"),
}


ISSUER_HELP: Final[Text] = _(
    "An authorization server names itself in its metadata as the MCP server names it, and has all its addresses on its"
    " own origin. Where a sign-in is refused because they differ: the issuer (or the origin) that is allowed for this"
    " MCP server alone."
)


class McpServerForm(_Form):
    """A server of the site. Secrets that are left empty stay as they are."""

    command_line = forms.CharField(
        label=_("Command"),
        required=False,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=_("A program with its arguments, started by each worker without a shell. Leave the URL empty then."),
    )
    new_secrets = forms.CharField(
        label=_("Headers or variables"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off"}),
        help_text=_(
            "One on each line, as NAME=value. They are stored encrypted and not shown again; empty keeps them."
        ),
    )
    forgets_secrets = forms.BooleanField(label=_("Forget the stored headers or variables"), required=False)
    client_secret = forms.CharField(
        label=_("Client secret"),
        required=False,
        widget=forms.PasswordInput(attrs={"size": 80, "autocomplete": "new-password"}),
        help_text=_("Stored encrypted and not shown again; empty keeps the one of this client ID."),
    )

    class Meta:
        model = McpServer
        fields: ClassVar = ("name", "url", "is_enabled", "is_trusted", "client_id", "allowed_issuer")
        widgets: ClassVar = {
            name: forms.TextInput(attrs={"size": 80}) for name in ("url", "client_id", "allowed_issuer")
        }
        help_texts: ClassVar = {
            "client_id": _(
                "Where this site was registered at the authorization server by hand, with its address"
                " /mcp/oauth/callback"
            ),
            "allowed_issuer": ISSUER_HELP,
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["command_line"].initial = shlex.join(self.instance.command)

    @override
    def clean(self) -> dict[str, Any]:
        """Refuse what cannot be a server."""
        data: dict[str, Any] = super().clean() or {}
        try:
            self.spec = self._spec(data)
            rows.check_place(self.spec, allows_programs=True)
        except McpServerInvalid as error:
            raise forms.ValidationError(translate(error.phrase)) from error
        except ValueError as error:
            raise forms.ValidationError(_("The command or the headers cannot be read.")) from error
        return data

    def _spec(self, data: dict[str, Any]) -> McpServerSpec:
        command = shlex.split(data.get("command_line") or "")
        kept = None if self.instance._state.adding else rows.spec_of(self.instance)
        given = dict(_pair(line) for line in (data.get("new_secrets") or "").splitlines() if line.strip())
        stored = {} if kept is None or data.get("forgets_secrets") else {**kept.headers, **kept.env}
        held = given or stored
        client_id = data.get("client_id") or ""
        client_secret = data.get("client_secret") or ""
        if kept is not None and not client_secret and kept.client_id == client_id:
            client_secret = kept.client_secret
        return McpServerSpec(
            name=data.get("name") or "",
            url=data.get("url") or "",
            command=tuple(command),
            headers={} if command else held,
            env=held if command else {},
            is_trusted=bool(data.get("is_trusted")),
            client_id=client_id,
            client_secret=client_secret,
            allowed_issuer=data.get("allowed_issuer") or "",
        )


class IssuerForm(_Form):
    """A server of people: only what is for administrators to decide."""

    class Meta:
        model = McpServer
        fields: ClassVar = ("allowed_issuer",)
        help_texts: ClassVar = {"allowed_issuer": ISSUER_HELP}

    def clean_allowed_issuer(self) -> str:
        """Refuse what cannot be an issuer."""
        issuer: str = self.cleaned_data["allowed_issuer"]
        try:
            rows.check_issuer(self.instance, issuer)
        except McpServerInvalid as error:
            raise forms.ValidationError(translate(error.phrase)) from error
        return issuer


def _pair(line: str) -> tuple[str, str]:
    name, is_there, value = line.partition("=")
    if not is_there:
        raise ValueError("no equals sign")
    return name.strip(), value.strip()


def _is_of_site(server: McpServer | None) -> bool:
    return server is None or server.scope == McpScope.SITE


StateFilter = choice_filter(_("state"), "state", {each: (STATE_WORDS[each][1], Q(state=each)) for each in McpState})


class McpServerColumns:
    """Columns of the list and of the page of a server."""

    whose = column(
        _("for"), lambda row: str(noted(SCOPE_WORDS[row.scope], "" if row.owner is None else str(row.owner)))
    )
    way = column(_("way"), selectors.shown_url)
    standing = column(_("state"), lambda row: str(state(*STATE_WORDS[row.state], row.error)), ordering="state")

    @admin.display(description=_("tools"))
    def offers(self, row: McpServer) -> str:
        """The number of tools, and of those that cannot be offered."""
        catalogue = row.catalogue or {}
        skipped = len(catalogue.get("skipped", ()))
        text = ngettext("%(count)d left out", "%(count)d left out", skipped) % {"count": skipped} if skipped else ""
        return str(noted(str(len(catalogue.get("tools", ()))), text)) if catalogue else NOTHING

    enabled = column(_("enabled"), lambda row: row.is_enabled, boolean=True, ordering="is_enabled")
    listed = column(_("read"), lambda row: moment(row.listed_at), ordering="listed_at")

    @admin.display(description=_("stored headers or variables"))
    def secret_names(self, row: McpServer) -> str:
        """Their names; the values are shown to no person."""
        if not row.secrets:
            return NOTHING
        spec = rows.spec_of(row)
        return ", ".join(sorted({*spec.headers, *spec.env}))

    tools = column(
        _("tools"), lambda row: ", ".join(tool["name"] for tool in (row.catalogue or {}).get("tools", ())) or NOTHING
    )

    @admin.display(description=_("left out"))
    def left_out(self, row: McpServer) -> str:
        """Tools that cannot be offered, each with its reason."""
        skipped = (row.catalogue or {}).get("skipped", ())
        return "; ".join(f"{item['name']}: {item['reason']}" for item in skipped) or NOTHING


@admin.register(McpServer)
class McpServerAdmin(McpServerColumns, PageAdmin):
    """All servers, newest first. Those of the site can be added and changed; of others the allowed issuer alone."""

    form = McpServerForm
    list_display = ("name", "whose", "way", "standing", "offers", "enabled", "listed")
    list_filter = (StateFilter, "scope", "transport", "is_enabled")
    list_select_related = ("owner",)
    search_fields = ("name", "=id", "=instance_id")
    search_help_text = _("A part of the name, or the exact id of a server or a conversation.")
    ordering = ("-created_at",)
    actions = ("enable", "disable", "connect")
    readonly_fields = ("id", "whose", "way", "standing", "listed", "secret_names", "tools", "left_out")

    @override
    def get_urls(self) -> list[URLPattern]:
        return [*McpPasting(self).urls(), *super().get_urls()]

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.add_{self.opts.model_name}")

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Django's own change permission; what can be changed depends on the server."""
        return self.has_manage_permission(request)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_remove_permission(request)

    @override
    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form for servers of the site, or the one for those of people."""
        form = McpServerForm if _is_of_site(obj) else IssuerForm
        return super().get_form(request, obj, change, **{**kwargs, "form": form})

    @override
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form for servers of the site; what is known of a server below."""
        known = ("id", "whose", "way", "standing", "listed", "secret_names", "tools", "left_out")
        edited = (
            *("name", "url", "command_line", "new_secrets", "forgets_secrets"),
            *("is_enabled", "is_trusted"),
        )
        signing_in = (_("Signing in"), {"fields": ("client_id", "client_secret", "allowed_issuer")})
        if obj is None:
            return ((None, {"fields": tuple(name for name in edited if name != "forgets_secrets")}), signing_in)
        if not self.has_change_permission(request, obj):
            return ((None, {"fields": ("name", *known)}),)
        if not _is_of_site(obj):
            return ((None, {"fields": ("name", "allowed_issuer")}), (_("State"), {"fields": known}))
        return ((None, {"fields": edited}), signing_in, (_("State"), {"fields": known}))

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The columns of ours; the name, too, where nothing can be changed."""
        may_change = _is_of_site(obj) and self.has_change_permission(request, obj)
        return self.readonly_fields if may_change else ("name", *self.readonly_fields)

    @override
    def save_model(self, request: HttpRequest, obj: McpServer, form: Any, change: bool) -> None:
        if not _is_of_site(obj) and change:
            rows.allow_issuer(obj, form.cleaned_data["allowed_issuer"])
            return
        if not change:
            obj.id, obj.scope = rows.new_server_id(form.spec.name), McpScope.SITE
        rows.apply_spec(obj, form.spec)
        if form.cleaned_data["client_secret"]:
            obj.client_issuer = ""  # entered anew: for whichever authorization server there is now
        super().save_model(request, obj, form, change)
        rows.changed(obj)
        if obj.is_enabled:
            connect_soon(obj, request.user.pk)

    @override
    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        rows.remove_server(obj)

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        for server in queryset:
            rows.remove_server(server)

    @admin.action(description=_("Enable"), permissions=["manage"])
    def enable(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        """Let turns have the tools of the selected servers."""
        self._set(request, queryset, is_enabled=True)

    @admin.action(description=_("Disable"), permissions=["manage"])
    def disable(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        """Take the tools of the selected servers away from all turns that begin from now on."""
        self._set(request, queryset, is_enabled=False)

    @admin.action(description=_("Connect now"), permissions=["manage"])
    def connect(self, request: HttpRequest, queryset: QuerySet[McpServer]) -> None:
        """Have workers connect to the selected servers."""
        chosen = list(queryset)
        for server in chosen:
            connect_soon(rows.begin_again(server), server.owner_id or request.user.pk)
        self._report(request, len(chosen))

    def _set(self, request: HttpRequest, queryset: QuerySet[McpServer], *, is_enabled: bool) -> None:
        chosen = list(queryset)
        for server in chosen:
            rows.set_server(server, is_enabled=is_enabled)
            self.log_change(request, server, str(_("Enabled.") if is_enabled else _("Disabled.")))
        self._report(request, len(chosen))

    def _report(self, request: HttpRequest, count: int) -> None:
        text = ngettext("%(count)d server was changed.", "%(count)d servers were changed.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)
