"""Tables of programs that people let act for them over MCP: registered clients, grants, and the tokens of grants.

Secrets are stored as hashes. Who may do what is decided in `chat/access/oauth/`.
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from thinkproject.kernel.ids import new_id


def new_client_id() -> str:
    """Id of a registered client."""
    return new_id("mcc")


def new_grant_id() -> str:
    """Id of a grant."""
    return new_id("grn")


class OAuthClient(models.Model):
    """A program that registered itself. What it says of itself is not verified; it has no secret (PKCE)."""

    id = models.CharField(primary_key=True, max_length=64, default=new_client_id, editable=False)
    name = models.CharField(max_length=100, blank=True, default="")  # as the program calls itself
    redirect_uris = JSONText(default=list)
    network = models.CharField(max_length=45, blank=True, default="")  # it registered from there
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("connected program")
        verbose_name_plural = _("connected programs")
        indexes = [models.Index(fields=["network", "created_at"], name="think_oauth_client_network")]

    def __str__(self) -> str:
        return self.name or self.id


class OAuthGrant(models.Model):
    """A person's consent: this program may use this agent for this person, within these scopes.

    It begins with a code, of one use, that the program exchanges for tokens.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_grant_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="grants")
    agent = models.CharField(_("agent"), max_length=200)  # route name
    resource = models.CharField(_("address"), max_length=500)  # address of the endpoint that the tokens are for
    scopes = JSONText(default=list)
    code_hash = models.CharField(max_length=64, unique=True)
    code_challenge = models.CharField(max_length=128)
    code_expires_at = models.DateTimeField()
    redirect_uri = models.TextField()
    redirect_is_explicit = models.BooleanField(default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    exchanged_at = models.DateTimeField(null=True, blank=True)  # when the code was used
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("grant to a program")
        verbose_name_plural = _("grants to programs")
        indexes = [models.Index(fields=["user", "-created_at"], name="think_oauth_grant_user")]

    def __str__(self) -> str:
        return f"{self.client_id} {self.agent}"


class OAuthToken(models.Model):
    """An access or refresh token of a grant. A refresh token that was replaced stays, so that its reuse is noticed."""

    class Kind(models.TextChoices):
        """The use of a token."""

        ACCESS = "access"
        REFRESH = "refresh"

    grant = models.ForeignKey(OAuthGrant, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True, blank=True)  # of a refresh token: when it was used

    class Meta:
        verbose_name = _("token of a program")
        verbose_name_plural = _("tokens of programs")

    def __str__(self) -> str:
        return f"{self.kind} of {self.grant_id}"
