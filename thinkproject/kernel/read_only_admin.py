"""Base of read-only admin pages: bounded counts, actions instead of forms, one form for times and for JSON values."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import DateTimeField, Field, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timezone import localtime
from typing_extensions import override

from thinkproject.kernel.fields import JSONText

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
MOMENT: Final = "j M Y, H:i"
"""How a time is written, in lists, on pages and in sentences."""


class BoundedPaginator(_Paginator):
    """Counts up to a limit: COUNT over a large table costs seconds. People look at the first pages, then search."""

    @cached_property
    def count(self) -> int:
        """Rows up to the limit, by key only: a list's annotations are not computed for them."""
        rows: Any = self.object_list
        return rows.order_by().values("pk")[:COUNT_LIMIT].count() if isinstance(rows, QuerySet) else len(rows)


class ShownValues:
    """Mixed into admin classes: times as in lists, and JSON as JSON; Django alone shows the `repr` of the latter."""

    model: type[Model]
    get_readonly_fields: Callable[..., Any]

    def with_shown_values(self, names: Iterable[Any], readonly: Iterable[Any] | None = None) -> list[Any]:
        """Replace names of such columns by what shows them. `readonly`: only these; without it, all."""
        columns = {field.name: field for field in self.model._meta.get_fields() if isinstance(field, _OWN_FORM)}
        taken = columns.keys() if readonly is None else columns.keys() & {name for name in readonly if _is_name(name)}
        return [
            tuple(self.with_shown_values(name, readonly))
            if isinstance(name, (list, tuple))
            else _shown(columns[name])
            if _is_name(name) and name in taken
            else name
            for name in names
        ]


_OWN_FORM = (DateTimeField, JSONText)


def _is_name(name: object) -> bool:
    return isinstance(name, str)


@functools.cache  # Django compares the names of fields with those that are read-only
def _shown(field: "Field[Any, Any]") -> Callable[[Any], str]:
    def shown(row: Any) -> str:
        value = getattr(row, field.attname)
        if isinstance(field, DateTimeField):
            return str(moment(value))
        return NOTHING if value is None else block(value)

    shown.__name__ = field.name
    return admin.display(description=field.verbose_name)(shown)


class ReadOnlyAdmin(ShownValues, _ModelAdmin):
    """A read-only list with details: services write these rows. Changes are actions."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count the table
    list_per_page = 50
    can_delete = False

    @override
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
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
        if obj is not None:
            context = {**context, "title": self.page_title(obj), "subtitle": None}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def page_title(self, row: Any) -> str:
        """The heading of a row's page: words before ids."""
        return str(row)

    @override
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show times and JSON in their own form; where rows can be changed, those that cannot."""
        readonly = super().get_readonly_fields(request, obj) if self.has_change_permission(request, obj) else None
        return [
            (title, {**options, "fields": self.with_shown_values(options["fields"], readonly)})
            for title, options in super().get_fieldsets(request, obj)
        ]

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.with_shown_values(super().get_readonly_fields(request, obj))

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


class ReadOnlyInline(ShownValues, _TabularInline):
    """Read-only rows below another one, for users who may view both."""

    extra = 0
    can_delete = False

    @override
    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.with_shown_values(super().get_fields(request, obj))

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.with_shown_values(super().get_readonly_fields(request, obj))

    @override
    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are made by services."""
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are changed by services, if ever."""
        return False


def column(words: Any, show: Callable[[Any], object], **display: Any) -> Any:
    """A column of a list or field of a page: its title, and how a row shows it. `display`: as for `admin.display`."""

    def shown(_page: object, row: Any) -> object:
        return show(row)

    return admin.display(shown, description=words, **display)


def choice_filter(title: Any, parameter: str, choices: Mapping[str, tuple[Any, Q]]) -> type[admin.SimpleListFilter]:
    """A filter of a list by what is known beforehand, not by a DISTINCT over the table.

    `choices`: by its value in the address, the words of each and its condition; any other value chooses nothing.
    """

    class ChoiceFilter(admin.SimpleListFilter):
        parameter_name = parameter

        @override
        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
            return [(str(value), words) for value, (words, _condition) in choices.items()]

        @override
        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            chosen = choices.get(self.value() or "")
            return queryset if chosen is None else queryset.filter(chosen[1])

    ChoiceFilter.title = title
    return ChoiceFilter


def moment(value: datetime | None) -> SafeString | str:
    """A time for a list: short, with the exact one for machines."""
    if value is None:
        return NOTHING
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), moment_text(value))


def moment_text(value: datetime) -> str:
    """A time within a sentence."""
    return date_format(localtime(value), MOMENT)


def block(value: Any) -> str:
    """A value as its own lines: JSON indented, text as it is."""
    shown = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    shown = shown.encode(errors="replace").decode()  # a lone surrogate has no UTF-8
    return format_html('<pre class="think-block" tabindex="0">{}</pre>', shown)


def amount(value: Any) -> str:
    """A cost in US dollars, with as many digits as it takes to see it; as the page of people writes it."""
    cost = Decimal(value or 0)
    digits = 2 if cost >= Decimal("0.1") or not cost else 4 if cost >= Decimal("0.001") else 6
    whole, _point, cents = f"{cost:,.{digits}f}".partition(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"
