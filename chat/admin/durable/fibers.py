"""Buttons on the page of a fiber: stop it, run it again, say how it has ended."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.background.rows import can_restart
from chat.background.service import notify_fiber
from fibers import services
from fibers.admin import STATUS_WORDS, FiberAdmin
from fibers.core.states import TERMINAL, FiberStatus
from fibers.models import Fiber

_ENDS = {"complete": FiberStatus.COMPLETED, "fail": FiberStatus.FAILED, "dismiss": FiberStatus.CANCELLED}


class FiberButtons(FiberAdmin):
    """Mixed in: the actions of the list as buttons of a fiber's page, those that its state allows."""

    change_form_template = "admin/think_fibers/fiber/change_form.html"

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.act_view)
        return [path("<str:fiber_id>/act/", view, name="think_fibers_fiber_act"), *super().get_urls()]

    def act_view(self, request: HttpRequest, fiber_id: str) -> HttpResponse:
        """Stop a fiber, run it again, or say how an interrupted one has ended (POST)."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        do = request.POST.get("do", "")
        if not self._may(request, do):
            raise PermissionDenied
        fiber = Fiber.objects.filter(pk=fiber_id).first()
        if fiber is None:
            raise Http404
        done = self._do(fiber, do)
        if done is None:
            self.message_user(request, _("It has moved on meanwhile. Nothing was changed."), messages.WARNING)
        else:
            self.log_change(request, fiber, str(done))
            notify_fiber(fiber)
            self.message_user(request, done, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:think_fibers_fiber_change", args=[fiber.pk]))

    def _may(self, request: HttpRequest, do: str) -> bool:
        if do in ("stop", "dismiss"):
            return self.has_cancel_permission(request)
        return do in ("run-again", "complete", "fail") and self.has_requeue_permission(request)

    def _do(self, fiber: Fiber, do: str) -> Any:
        """Do it, and return in words that it was done; nothing where the state forbids it."""
        if do == "stop":
            return _("Stopped.") if services.cancel_fiber(fiber.pk, reason="cancelled_by_staff") else None
        if do == "run-again":
            return _("Run again.") if can_restart(fiber) and services.requeue_fiber(fiber.pk) else None
        status = _ENDS[do]
        return STATUS_WORDS[status] if services.resolve_fiber(fiber.pk, status) else None

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the buttons that apply to the fiber's state."""
        context = dict(extra_context or {})
        fiber = Fiber.objects.filter(pk=unquote(object_id)).first()
        if fiber is not None:
            stops, again = self.has_cancel_permission(request), self.has_requeue_permission(request)
            is_interrupted = fiber.status == FiberStatus.INTERRUPTED
            context["can_stop"] = stops and fiber.status not in TERMINAL and fiber.cancel_requested_at is None
            context["can_run_again"] = again and can_restart(fiber)
            context["can_resolve"] = again and is_interrupted
            context["can_dismiss"] = stops and is_interrupted
        return super().change_view(request, object_id, form_url, context)
