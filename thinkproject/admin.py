"""Names in the admin pages of others that have none which can be translated, and what is wrong in them."""

from axes.admin import AccessAttemptAdmin, IsLockedOutFilter
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

admin.display(description=_("status"))(AccessAttemptAdmin.status)
# Without the filter by path: an attempt that came by none is a link without a name there.
AccessAttemptAdmin.list_filter = ["attempt_time", IsLockedOutFilter]
