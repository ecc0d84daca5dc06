"""Times and JSON values have one form on all read-only pages of the admin."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import DateTimeField, Model
from django.test import RequestFactory

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin


def flat(names: object) -> list[object]:
    return [each for name in names for each in flat(name)] if isinstance(names, (list, tuple)) else [names]


@pytest.mark.parametrize(
    "model", [model for model, page in admin.site._registry.items() if isinstance(page, ReadOnlyAdmin)]
)
def test_no_page_shows_a_time_or_json_as_python_does(model: type[Model], admin_user: User, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = admin_user
    page = admin.site._registry[model]
    shown = [(model, name) for _title, options in page.get_fieldsets(request) for name in flat(options["fields"])]
    for inline in page.get_inline_instances(request):
        shown += [(inline.model, name) for name in flat(inline.get_fields(request))]
    for owner, name in shown:
        columns = {field.name: field for field in owner._meta.get_fields()}
        assert not isinstance(columns.get(str(name)), (DateTimeField, JSONText)), (owner, name)
