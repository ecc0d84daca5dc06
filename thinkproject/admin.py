"""Names in the admin pages of others that have none which can be translated."""

from axes.admin import AccessAttemptAdmin
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

admin.display(description=_("status"))(AccessAttemptAdmin.status)
