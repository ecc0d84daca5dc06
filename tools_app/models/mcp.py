"""Tables of MCP servers and of people's sign-ins at them. Django finds them through `tools_app.models`."""

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.fields import JSONText
from tools_app.core.mcp.servers import McpScope, McpState, McpTransport

_SCOPES: Final = [
    (McpScope.INSTANCE.value, _("one conversation")),
    (McpScope.USER.value, _("all of its owner")),
    (McpScope.SITE.value, _("everybody")),
]
_TRANSPORTS: Final = [
    (McpTransport.HTTP.value, _("over the network")),
    (McpTransport.STDIO.value, _("a program of the workers")),
]


class McpServer(models.Model):
    """A server of the Model Context Protocol: the way to it, what it offers, and how the last connection went.

    What it offers is kept, so that its tools are known without a connection.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=32, editable=False)
    scope = models.CharField(_("for"), max_length=16, choices=_SCOPES)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("owner"),
    )  # of the conversation too; none for a site's
    instance_id = models.CharField(_("conversation"), max_length=64, blank=True, default="")  # opaque
    name = models.CharField(_("name"), max_length=100)
    transport = models.CharField(_("transport"), max_length=8, choices=_TRANSPORTS)
    url = models.TextField(_("URL"), blank=True, default="")
    command = JSONText(default=list, blank=True)  # the program and its arguments
    secrets = models.TextField(blank=True, default="", editable=False)  # encrypted: headers, variables, client secret
    client_id = models.CharField(_("client ID"), max_length=2_000, blank=True, default="")  # registered by hand
    client_issuer = models.CharField(max_length=2_000, blank=True, default="", editable=False)  # where its secret goes
    allowed_issuer = models.CharField(_("allowed issuer"), max_length=2_000, blank=True, default="")
    config_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    is_trusted = models.BooleanField(_("trusted"), default=False)
    is_declared = models.BooleanField(_("declared by code"), default=False, editable=False)
    needs_sign_in = models.BooleanField(_("asks people to sign in"), default=False, editable=False)
    state = models.CharField(
        _("state"), max_length=16, choices=[(s.value, s.value) for s in McpState], default=McpState.NOT_CONNECTED
    )
    error = models.TextField(_("error"), blank=True, default="")
    failures = models.PositiveIntegerField(default=0)  # in a row
    retry_at = models.DateTimeField(null=True, blank=True)  # no connection is tried before
    catalogue = JSONText(null=True, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True, default="", editable=False)  # of the catalogue
    accepted = JSONText(null=True, blank=True)  # fingerprints of tools by name; NULL before the first catalogue
    is_reviewed = models.BooleanField(_("reviewed"), default=False, editable=False)  # a person accepted its tools once
    created_at = models.DateTimeField(auto_now_add=True)
    listed_at = models.DateTimeField(null=True, blank=True)  # when the catalogue was read

    class Meta:
        app_label = "think_tools"
        db_table = "think_tools_mcp_server"
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        indexes = [
            models.Index(fields=["scope", "owner"], name="think_mcp_scope"),
            models.Index(fields=["instance_id"], name="think_mcp_instance"),
        ]

    def __str__(self) -> str:
        return self.name


class McpSignIn(models.Model):
    """One person's sign-in at a server: the one that is under way, and the tokens of the one that succeeded."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="sign_ins")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    grant = models.TextField(blank=True, default="", editable=False)  # encrypted: tokens, client, endpoints
    expires_at = models.DateTimeField(null=True, blank=True)  # of the access token
    version = models.PositiveIntegerField(default=0)  # advanced by each change of the grant
    refreshing_until = models.DateTimeField(null=True, blank=True)  # a process is refreshing the token
    pending = models.TextField(blank=True, default="", editable=False)  # encrypted: verifier, client, endpoints
    pending_hash = models.CharField(max_length=64, blank=True, default="", db_index=True, editable=False)
    pending_session = models.CharField(max_length=64, blank=True, default="", editable=False)
    pending_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        app_label = "think_tools"
        db_table = "think_tools_mcp_sign_in"
        verbose_name = _("sign-in at an MCP server")
        verbose_name_plural = _("sign-ins at MCP servers")
        constraints = [models.UniqueConstraint(fields=["server", "owner"], name="think_mcp_sign_in")]

    def __str__(self) -> str:
        return f"{self.server_id} {self.owner_id}"
