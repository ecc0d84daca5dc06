"""Base of read-only admin pages: bounded counts, and actions instead of forms."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timezone import localtime
from typing_extensions import override

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
    _Paginator = Paginator[Any]
else:
    _ModelAdmin = admin.ModelAdmin
    _TabularInline = admin.TabularInline
    _Paginator = Paginator

COUNT_LIMIT = 10_000
NOTHING = "–"
"""Stands in a list where there is no value."""


class BoundedPaginator(_Paginator):
    """Counts up to a limit: COUNT over a large table costs seconds. People look at the first pages, then search."""

    @cached_property
    def count(self) -> int:
        """Rows up to the limit, by key only: a list's annotations are not computed for them."""
        rows: Any = self.object_list
        return rows.order_by().values("pk")[:COUNT_LIMIT].count() if isinstance(rows, QuerySet) else len(rows)


class ReadOnlyAdmin(_ModelAdmin):
    """A read-only list with details: services write these rows. Changes are actions."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count the table
    list_per_page = 50
    can_delete = False

    @override
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Call a list by what is in it."""
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    @override
    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Call a page by what it is about."""
        if obj is not None:
            context = {**context, "title": self.page_title(obj), "subtitle": None}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def page_title(self, row: Any) -> str:
        """The heading of a row's page: words before ids."""
        return str(row)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by services."""
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are changed by services."""
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Deletion is left to services; admin pages call them for users with Django's permission."""
        return self.can_delete and super().has_delete_permission(request, obj)


class ReadOnlyInline(_TabularInline):
    """Read-only rows below another one, for users who may view both."""

    extra = 0
    can_delete = False

    @override
    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are made by services."""
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are changed by services, if ever."""
        return False


def moment(value: datetime | None) -> SafeString | str:
    """A time for a list: short, with the exact one for machines."""
    if value is None:
        return NOTHING
    text = date_format(localtime(value), "j M Y, H:i")
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), text)
