"""Base of read-only admin pages: bounded counts, and actions instead of forms."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
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
