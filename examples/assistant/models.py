"""Who is who at the provider."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class Identity(models.Model):
    """A person at a provider and their account here. The pair is theirs for ever; e-mail addresses change hands."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager["Identity"]] = models.Manager()

    class Meta:
        """One account for each."""

        verbose_name_plural = "identities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="assistant_one_account_each")
        ]

    def __str__(self) -> str:
        """As staff see it."""
        return f"{self.subject} at {self.issuer}"
