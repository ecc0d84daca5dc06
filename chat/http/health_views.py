"""`/health/live` and `/health/ready`: for load balancers and supervisors, outside sign-in."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.http.health import readiness


@never_cache
@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    """The process answers. Looks at nothing else, so that a slow database does not restart web servers."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """The process can serve turns: 200, or 503 and what is missing."""
    health = readiness()
    status = "ok" if health.is_ready else "unavailable"
    return JsonResponse({"status": status, "parts": health.parts}, status=200 if health.is_ready else 503)
