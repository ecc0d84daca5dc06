"""Pages of staff for writing extensions: edit and reload one, and load one for a person or for everybody."""

import json
from typing import Any, Final

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import PageAdmin
from chat.instances.notifications import notify_conversation
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, load
from thinkproject.kernel.languages import translate
from tools_app.core.files.diffs import unified
from tools_app.errors import ExtensionConflict, FileFailed
from tools_app.extensions.services import (
    Author,
    Holder,
    current_version,
    holder_of,
    load_extension,
    update_extension,
)
from tools_app.models.extensions import Extension, ExtensionAuthor, ExtensionLevel

MAX_CHARS: Final = 400_000
EMPTY: Final[JSONObject] = {"name": "", "version": "1.0.0", "description": "", "permissions": {}}


class ExtensionForm(forms.Form):
    """The manifest and the source of an extension."""

    manifest = forms.CharField(
        label=_("Manifest"), max_length=MAX_CHARS, widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "false"})
    )
    source = forms.CharField(
        label=_("Source"),
        max_length=MAX_CHARS,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false"}),
    )

    def clean_manifest(self) -> JSONObject:
        """The manifest as JSON."""
        try:
            value = load(self.cleaned_data["manifest"])
        except ValueError:
            raise forms.ValidationError(_("This is no JSON.")) from None
        if not isinstance(value, dict):
            raise forms.ValidationError(_("A manifest is a JSON object."))
        return value


class ExtensionEditForm(ExtensionForm):
    """The same, with the revision that the person was shown."""

    revision = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)


class NewExtensionForm(ExtensionForm):
    """The same, with whom it is for."""

    user = forms.CharField(
        label=_("User"), required=False, max_length=150, help_text=_("For this user only. Empty: for everybody.")
    )
    field_order = ("user", "manifest", "source")

    @override
    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        name = data.get("user")
        if name:
            users = get_user_model()
            found = users._default_manager.filter(**{users.USERNAME_FIELD: name}).first()
            if found is None:
                self.add_error("user", _("There is no such user."))
            data["owner_id"] = None if found is None else found.pk
        return data


class ExtensionPages:
    """The views, for the admin of extensions."""

    def __init__(self, admin: PageAdmin) -> None:
        self.admin = admin

    def urls(self) -> list[URLPattern]:
        """Their addresses."""
        wrap, name = self.admin.admin_site.admin_view, "think_tools_extension"
        return [
            path("load/", wrap(self.load_view), name=f"{name}_load"),
            path("<int:pk>/edit/", wrap(self.edit_view), name=f"{name}_edit"),
        ]

    def edit_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Write a new version of an extension; it runs from its next call on."""
        self._check(request)
        row = Extension.objects.filter(pk=pk).first()
        if row is None:
            raise Http404
        initial = {
            "manifest": _shown(row.manifest),
            "source": current_version(row).source,
            "revision": row.revision,
        }
        posted = request.POST.copy()
        form = ExtensionEditForm(posted if request.method == "POST" else None, initial=initial)
        differences = ""
        if form.is_bound and form.is_valid():
            given = {"source": form.cleaned_data["source"], "manifest": form.cleaned_data["manifest"]}
            expected = form.cleaned_data["revision"]
            try:
                async_to_sync(update_extension)(
                    holder_of(row), row.name, author=_author(request), expected=expected, **given
                )
            except ExtensionConflict as error:
                form.add_error(None, _("Another person has changed this extension. Save again to replace it by yours."))
                posted["revision"] = str(error.data["revision"])
                differences = _differences(pk, given)
            except ThinkError as error:
                form.add_error(None, translate(error.phrase))
            else:
                self.admin.log_change(request, row, str(_("New version written.")))
                if row.level == ExtensionLevel.INSTANCE:
                    notify_conversation(row.owner_id, row.scope)
                self.admin.message_user(request, _("The new version runs from the next call on."), messages.SUCCESS)
                return HttpResponseRedirect(_page_of(row.pk))
        title = str(_("Edit “%(name)s”")) % {"name": row.name}
        return self._page(request, form, title, _page_of(row.pk), differences=differences)

    def load_view(self, request: HttpRequest) -> HttpResponse:
        """Load an extension for a person, or for everybody."""
        self._check(request)
        initial = {"manifest": _shown(EMPTY), "source": "({ tools: {\n} })"}
        form = NewExtensionForm(request.POST if request.method == "POST" else None, initial=initial)
        if form.is_bound and form.is_valid():
            owner_id = form.cleaned_data.get("owner_id")
            level = ExtensionLevel.SITE if owner_id is None else ExtensionLevel.USER
            holder = Holder(level=level, owner_id=owner_id)
            manifest, source = form.cleaned_data["manifest"], form.cleaned_data["source"]
            try:
                made = async_to_sync(load_extension)(holder, manifest, source, author=_author(request))
            except ThinkError as error:
                form.add_error(None, translate(error.phrase))
            else:
                row = Extension.objects.get(pk=made.pk or 0)
                self.admin.log_change(request, row, str(_("Loaded.")))
                self.admin.message_user(request, _("The extension was loaded."), messages.SUCCESS)
                return HttpResponseRedirect(_page_of(row.pk))
        return self._page(request, form, str(_("Load an extension")), reverse("admin:think_tools_extension_changelist"))

    def _check(self, request: HttpRequest) -> None:
        if not self.admin.has_view_permission(request) or not self.admin.has_manage_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, form: forms.Form, title: str, back: str, **more: Any) -> HttpResponse:
        return self.admin.page(request, "form", title=title, form=form, back=back, **more)


def _differences(pk: int, given: dict[str, Any]) -> str:
    """The way from the present manifest and source to those that a person wants to save."""
    row = Extension.objects.filter(pk=pk).first()
    if row is None:
        return ""
    pairs = (
        (_("Manifest"), _shown(row.manifest), _shown(given["manifest"])),
        (_("Source"), current_version(row).source, given["source"].replace("\r\n", "\n")),
    )
    try:
        found = [unified(f"{now}\n", f"{wanted}\n", str(name), str(name)) for name, now, wanted in pairs]
    except FileFailed as error:
        return error.message
    return "\n".join(each for each in found if each)


def _author(request: HttpRequest) -> Author:
    return Author(via=ExtensionAuthor.ADMIN, user_id=request.user.pk)


def _page_of(pk: int) -> str:
    return reverse("admin:think_tools_extension_change", args=[pk])


def _shown(manifest: JSONObject) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False)
