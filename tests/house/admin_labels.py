"""The labels of admin pages: names of apps, tables and fields, columns, filters, actions, forms, choices."""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import django
from babel.messages.pofile import read_po
from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, get_fields_from_path, label_for_field
from django.contrib.auth.models import User
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import HttpRequest
from django.test import RequestFactory
from django.utils import translation

from thinkproject.web.languages import ACCENTED

THEIRS = ("axes.", "django.")
"""How the modules of others begin whose pages and tables are in the admin."""

FROM_CODE = frozenset({"AgentFilter", "AgentOfConversationFilter", "NameFilter", "TargetFilter"})
"""Filters whose choices are named by the code of agents and of durable functions."""

Label = tuple[str, Any]
"""Where an admin page shows a text, and the text."""


def sentences_of_django() -> set[str]:
    """The English sentences of Django's catalogues."""
    found: set[str] = set()
    for path in sorted(Path(django.__file__).parent.glob("**/locale/en/LC_MESSAGES/django.po")):
        with path.open("rb") as file:
            for message in read_po(file):
                found.update(message.id if isinstance(message.id, tuple | list) else [message.id])
    return found


def loose_labels(site: admin.AdminSite, known: Container[str], named: Container[str] = ()) -> list[str]:
    """Labels of a site that no catalogue has, a line for each. `known`: the sentences of ours and of Django's.

    `named`: texts that are names of a developer's, shown as they are.

    Other apps have catalogues of their own, not always complete ones: of these it is enough that a label is looked up.
    """
    with translation.override("en"):
        english = _all_labels(site)
    with translation.override(ACCENTED):
        accented = _all_labels(site)
    found = set()
    for (place, text, is_ours), (_place, changed, _is_ours) in zip(english, accented, strict=True):
        lower = f"{text[:1].lower()}{text[1:]}"  # forms begin the names of fields with a capital letter
        if text in named:
            continue
        if text == changed or (is_ours and text not in known and lower not in known):
            found.add(f"{place}: {text}")
    return sorted(found)


def _all_labels(site: admin.AdminSite) -> list[tuple[str, str, bool]]:
    """Place and text of each label in the current language, and whether it is ours."""
    request = request_of_staff()
    found = [(place, str(text), True) for place, text in labels_of_site(site, request)]
    for model, page in site._registry.items():
        for kind in type(page).__mro__:
            is_ours = issubclass(kind, admin.ModelAdmin) and not kind.__module__.startswith(THEIRS)
            if kind is type(page) or (is_ours and "list_display" in vars(kind)):
                found += [(place, str(text), is_ours) for place, text in labels_of_page(kind(model, site), request)]
    for model in apps.get_models():  # in lists of permissions and of what is deleted, those without a page too
        is_ours = not model.__module__.startswith(THEIRS)
        config = model._meta.app_config
        names = [*_names(model), (f"{type(config).__name__}.verbose_name", config.verbose_name)]
        found += [(place, str(text), is_ours) for place, text in names]
    return found


def request_of_staff() -> HttpRequest:
    """The request of a superuser; needs no database."""
    request = RequestFactory().get("/admin/")
    request.user = User(username="root", is_staff=True, is_superuser=True, is_active=True)
    return request


def labels_of_site(site: admin.AdminSite, request: HttpRequest) -> Iterator[Label]:
    """The names of a site, and what its index says."""
    for name in ("site_header", "site_title", "index_title"):
        yield f"{type(site).__name__}.{name}", getattr(site, name)
    for section in site.get_app_list(request):
        yield f"section {section['app_label']}", section["name"]
        for table in section["models"]:
            if "description" in table:
                yield f"section {section['app_label']}, {table['object_name']}", table["description"]


def labels_of_page(page: Any, request: HttpRequest) -> Iterator[Label]:
    """The labels of a table's list and of the pages of its rows."""
    place = type(page).__name__
    yield from _names(page.model)
    for column in page.get_list_display(request):
        yield from _column(page, column, f"{place}.list_display")
    for choice in page.get_list_filter(request):
        yield from _filter(page, choice, request, f"{place}.list_filter")
    for name, (_function, _name, description) in page.get_actions(request).items():
        yield f"{place}.actions {name}", description
    if page.search_help_text is not None:
        yield f"{place}.search_help_text", page.search_help_text
    row = page.model()
    yield from _form(page, request, row, place)
    if page.has_add_permission(request):
        yield from _form(page, request, None, f"{place} (new)")
    for inline in page.get_inline_instances(request):
        yield from _names(inline.model)
        yield f"{type(inline).__name__}.verbose_name_plural", inline.verbose_name_plural
        yield from _form(inline, request, row, type(inline).__name__)


def _names(model: type[models.Model]) -> Iterator[Label]:
    yield f"{model.__name__}.verbose_name", model._meta.verbose_name
    yield f"{model.__name__}.verbose_name_plural", model._meta.verbose_name_plural


def _form(page: Any, request: HttpRequest, row: models.Model | None, place: str) -> Iterator[Label]:
    """The fields of a row's page; without a row, of the page that adds one."""
    fieldsets = page.get_fieldsets(request, row)
    for title, options in fieldsets:
        if title:
            yield f"{place}.fieldsets", title
        if options.get("description"):
            yield f"{place}.fieldsets {title}", options["description"]
    edited: dict[str, forms.Field] = {}
    if isinstance(page, admin.ModelAdmin):
        edited = page.get_form(request, row, change=row is not None).base_fields
    elif page.has_change_permission(request, row):
        edited = page.get_formset(request, row).form.base_fields
    for name in flatten_fieldsets(fieldsets):
        if name not in edited:
            yield from _column(page, name, f"{place}.fields")
        elif not edited[name].widget.is_hidden:
            yield from _edited(edited[name], f"{place}.form {name}")


def _edited(shown: forms.Field, place: str) -> Iterator[Label]:
    yield place, shown.label
    if shown.help_text:
        yield f"{place}.help_text", shown.help_text
    if isinstance(shown, forms.ChoiceField) and not isinstance(shown, forms.ModelChoiceField):
        choices: Any = shown.choices
        yield from ((f"{place}={value}", text) for value, text in choices if value)


def _column(page: Any, name: Any, place: str) -> Iterator[Label]:
    if name != "__str__":  # the table's name
        yield f"{place} {name}", label_for_field(name, page.model, page)
        yield from _shown(page.model, name, place)


def _filter(page: Any, choice: Any, request: HttpRequest, place: str) -> Iterator[Label]:
    if isinstance(choice, type) and issubclass(choice, admin.SimpleListFilter):
        yield f"{place} {choice.__name__}", choice.title
        if choice.__name__ not in FROM_CODE:
            for value, text in choice(request, {}, page.model, page).lookup_choices:
                yield f"{place} {choice.__name__}={value}", text
        return
    name = choice[0] if isinstance(choice, tuple) else choice
    yield f"{place} {name}", get_fields_from_path(page.model, name)[-1].verbose_name
    yield from _shown(page.model, name, place)


def _shown(model: type[models.Model], name: Any, place: str) -> Iterator[Label]:
    """What Django shows of a table's field besides its name; of the columns of a page nothing."""
    try:
        shown: Any = get_fields_from_path(model, name)[-1] if isinstance(name, str) else None
    except FieldDoesNotExist:
        return
    if getattr(shown, "help_text", ""):
        yield f"{place} {name}.help_text", shown.help_text
    for value, text in getattr(shown, "flatchoices", ()):
        yield f"{place} {name}={value}", text
