"""Template tag for the first page of the admin: `{% dashboard as figures %}`."""

from typing import Any

from django import template

from chat.admin.overview import dashboard_of

register = template.Library()


@register.simple_tag(takes_context=True)
def dashboard(context: dict[str, Any]) -> dict[str, Any]:
    """Figures and plots of the installation; nothing for staff who may not see turns."""
    return dashboard_of(context["request"])
