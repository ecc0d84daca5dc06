"""Tables of tools: a call is a row."""

from django.conf import settings
from django.db import models

from thinkproject.kernel.fields import JSONText
from tools_app.core.calls import CallStatus


class ToolCallRecord(models.Model):
    """One tool call of one turn. Who claims it, and when, decides where it runs; its first result is its result."""

    turn_id = models.CharField(max_length=64)  # opaque here
    call_id = models.CharField(max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    tool_name = models.CharField(max_length=64)
    input = JSONText(default=dict)
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in CallStatus], default=CallStatus.RUNNING
    )
    output = JSONText(null=True, blank=True)
    attempt = models.PositiveIntegerField(default=1)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn_id", "call_id"], name="think_tool_call")]
        indexes = [models.Index(fields=["-created_at"], name="think_tool_call_recent")]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.call_id}"
