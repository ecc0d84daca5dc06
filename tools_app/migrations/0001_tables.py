"""The tables of tools, calls, files and servers, and the triggers of those that are only appended to."""

import django.core.validators
import django.db.models.deletion
import thinkproject.kernel.fields
import tools_app.core.action_rules
import tools_app.core.mcp.servers
import tools_app.core.tool_calls
import tools_app.models.permissions
import tools_app.models.workspaces
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from thinkproject.kernel import append_only

APPEND_ONLY = ("think_tools_approvalevent", "think_tools_guardevent")


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.install(editor.connection, APPEND_ONLY)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.remove(editor.connection, APPEND_ONLY)


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("think_tools", "0001_initial"),
        ("think_tools", "0002_approvals"),
        ("think_tools", "0003_early_answers"),
        ("think_tools", "0004_questions"),
        ("think_tools", "0005_admin_names"),
        ("think_tools", "0006_workspaces"),
        ("think_tools", "0007_details"),
        ("think_tools", "0008_executions"),
        ("think_tools", "0009_actions"),
        ("think_tools", "0010_file_backups"),
        ("think_tools", "0011_inner_calls"),
        ("think_tools", "0012_field_names"),
        ("think_tools", "0013_lasting_questions"),
        ("think_tools", "0014_mcp_extensions_guard"),
        ("think_tools", "0015_mcp_clients_by_hand"),
        ("think_tools", "0016_backups_by_step"),
        ("think_tools", "0017_rules_about_calls"),
        ("think_tools", "0018_append_only"),
        ("think_tools", "0019_directories_keep"),
        ("think_tools", "0020_executors_of_calls"),
        ("think_tools", "0021_events_of_rules"),
        ("think_tools", "0022_workspace_title"),
    ]

    dependencies = [
        ("think_fibers", "0001_tables"),
        ("think_sessions", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BannedSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64, unique=True, verbose_name="hash of the source")),
                ("reason", models.CharField(blank=True, default="", max_length=300, verbose_name="reason")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="when")),
                (
                    "banned_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="disabled by",
                    ),
                ),
            ],
            options={
                "verbose_name": "disabled source",
                "verbose_name_plural": "disabled sources",
            },
        ),
        migrations.CreateModel(
            name="Execution",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200, unique=True, verbose_name="key")),
                ("scope", models.CharField(max_length=64)),
                ("turn_id", models.CharField(max_length=64)),
                ("call_id", models.CharField(max_length=128, verbose_name="call id")),
                ("code", models.TextField()),
                ("seed", models.CharField(max_length=32, verbose_name="seed")),
                ("clock_ms", models.BigIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("waiting", "Waiting"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                        ],
                        default="running",
                        max_length=16,
                    ),
                ),
                ("outcome", models.CharField(blank=True, default="", max_length=16, verbose_name="outcome")),
                ("value", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("console", thinkproject.kernel.fields.JSONText(blank=True, default=list)),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "execution",
                "verbose_name_plural": "executions",
                "indexes": [
                    models.Index(fields=["scope", "-id"], name="think_execution_scope"),
                    models.Index(fields=["turn_id"], name="think_execution_turn"),
                    models.Index(
                        condition=models.Q(("status", "waiting")),
                        fields=["owner", "-id"],
                        name="think_execution_waiting",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ExecutionCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ordinal", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=300, verbose_name="function")),
                ("input", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("input_hash", models.CharField(max_length=64)),
                ("edited_input", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("begun", "Begun"),
                            ("asked", "Asked"),
                            ("running", "Running"),
                            ("waiting", "Waiting"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("was_asked", models.BooleanField(default=False)),
                ("output", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("details", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("settled_as", models.PositiveIntegerField(blank=True, null=True)),
                ("clock_ms", models.BigIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=1)),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "execution",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="calls", to="think_tools.execution"
                    ),
                ),
            ],
            options={
                "verbose_name": "call of an execution",
                "verbose_name_plural": "calls of executions",
                "ordering": ["ordinal"],
                "constraints": [models.UniqueConstraint(fields=("execution", "ordinal"), name="think_execution_call")],
            },
        ),
        migrations.CreateModel(
            name="Extension",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "level",
                    models.CharField(
                        choices=[("instance", "one conversation"), ("user", "one person"), ("site", "everybody")],
                        max_length=16,
                        verbose_name="scope",
                    ),
                ),
                ("scope", models.CharField(blank=True, default="", max_length=64, verbose_name="scope")),
                ("name", models.CharField(max_length=64, verbose_name="name")),
                ("prefix", models.CharField(max_length=64, verbose_name="prefix")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("number", models.PositiveIntegerField(default=1, verbose_name="version")),
                ("manifest", thinkproject.kernel.fields.JSONText()),
                ("surface", thinkproject.kernel.fields.JSONText()),
                ("granted", thinkproject.kernel.fields.JSONText(verbose_name="permissions")),
                ("sha256", models.CharField(max_length=64, verbose_name="hash of the source")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="loaded")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "extension",
                "verbose_name_plural": "extensions",
                "indexes": [models.Index(fields=["sha256"], name="think_extension_source")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("level", "instance")),
                        fields=("scope", "prefix"),
                        name="think_extension_of_instance",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("level", "user")),
                        fields=("owner", "prefix"),
                        name="think_extension_of_user",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("level", "site")), fields=("prefix",), name="think_extension_of_site"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ExtensionCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64, verbose_name="extension")),
                ("scope", models.CharField(max_length=64)),
                ("turn_id", models.CharField(blank=True, default="", max_length=64)),
                ("call_id", models.CharField(blank=True, default="", max_length=128, verbose_name="call id")),
                ("during", models.CharField(max_length=100, verbose_name="during")),
                ("method", models.CharField(max_length=60, verbose_name="call")),
                ("subject", models.CharField(blank=True, default="", max_length=300, verbose_name="about")),
                ("is_refused", models.BooleanField(default=False, verbose_name="refused")),
                ("error", models.CharField(blank=True, default="", max_length=500, verbose_name="error")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="when")),
                (
                    "extension",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="calls",
                        to="think_tools.extension",
                        verbose_name="extension",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "call of an extension",
                "verbose_name_plural": "calls of extensions",
                "indexes": [models.Index(fields=["scope", "-id"], name="think_extension_calls")],
            },
        ),
        migrations.CreateModel(
            name="ExtensionVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(verbose_name="number")),
                ("manifest", thinkproject.kernel.fields.JSONText()),
                ("source", models.TextField(verbose_name="source")),
                ("sha256", models.CharField(max_length=64, verbose_name="hash of the source")),
                (
                    "via",
                    models.CharField(
                        choices=[
                            ("model", "a model, with a person's approval"),
                            ("api", "its owner"),
                            ("code", "code of the server"),
                            ("admin", "staff"),
                        ],
                        max_length=16,
                        verbose_name="written by",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="written")),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
                (
                    "extension",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="think_tools.extension",
                        verbose_name="extension",
                    ),
                ),
            ],
            options={
                "verbose_name": "version of an extension",
                "verbose_name_plural": "versions of extensions",
                "indexes": [models.Index(fields=["author", "-created_at"], name="think_extension_author")],
                "constraints": [
                    models.UniqueConstraint(fields=("extension", "number"), name="think_extension_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="Guard",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="think_sessions.session",
                    ),
                ),
                ("scope", models.CharField(db_index=True, max_length=64)),
                ("seen", models.PositiveIntegerField(default=0)),
                (
                    "decision",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "asks"),
                            ("ask", "asks, as a person decided"),
                            ("until_new", "allowed until there is further text"),
                            ("conversation", "allowed in this conversation"),
                        ],
                        default="",
                        max_length=16,
                        verbose_name="decision",
                    ),
                ),
                ("decided_through", models.PositiveIntegerField(default=0)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "injection guard",
                "verbose_name_plural": "injection guards",
                "indexes": [models.Index(fields=["-created_at"], name="think_guard_recent")],
            },
        ),
        migrations.CreateModel(
            name="GuardEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("seen", "text of others"),
                            ("ask", "asks again"),
                            ("until_new", "allowed until there is further text"),
                            ("conversation", "allowed in this conversation"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("number", models.PositiveIntegerField(verbose_name="number")),
                ("origin", models.CharField(blank=True, default="", max_length=8, verbose_name="origin")),
                ("source", models.CharField(blank=True, default="", max_length=200, verbose_name="source")),
                ("message_id", models.CharField(blank=True, default="", max_length=200)),
                ("call_id", models.CharField(blank=True, default="", max_length=128, verbose_name="call id")),
                ("name", models.CharField(blank=True, default="", max_length=128)),
                ("turn_id", models.CharField(blank=True, default="", max_length=64, verbose_name="turn")),
                ("via", models.CharField(blank=True, default="", max_length=16, verbose_name="came by")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="when")),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "guard",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="events", to="think_tools.guard"
                    ),
                ),
            ],
            options={
                "verbose_name": "event of an injection guard",
                "verbose_name_plural": "events of injection guards",
                "ordering": ["id"],
                "indexes": [models.Index(fields=["guard", "kind", "message_id"], name="think_guard_place")],
            },
        ),
        migrations.CreateModel(
            name="McpServer",
            fields=[
                (
                    "id",
                    models.CharField(
                        editable=False, max_length=32, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("instance", "one conversation"), ("user", "all of its owner"), ("site", "everybody")],
                        max_length=16,
                        verbose_name="for",
                    ),
                ),
                ("instance_id", models.CharField(blank=True, default="", max_length=64, verbose_name="conversation")),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "transport",
                    models.CharField(
                        choices=[("http", "over the network"), ("stdio", "a program of the workers")],
                        max_length=8,
                        verbose_name="transport",
                    ),
                ),
                ("url", models.TextField(blank=True, default="", verbose_name="URL")),
                ("command", thinkproject.kernel.fields.JSONText(blank=True, default=list)),
                ("secrets", models.TextField(blank=True, default="", editable=False)),
                ("client_id", models.CharField(blank=True, default="", max_length=2000, verbose_name="client ID")),
                ("client_issuer", models.CharField(blank=True, default="", editable=False, max_length=2000)),
                (
                    "allowed_issuer",
                    models.CharField(blank=True, default="", max_length=2000, verbose_name="allowed issuer"),
                ),
                ("config_hash", models.CharField(blank=True, default="", editable=False, max_length=64)),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("is_trusted", models.BooleanField(default=False, verbose_name="trusted")),
                ("is_declared", models.BooleanField(default=False, editable=False, verbose_name="declared by code")),
                (
                    "needs_sign_in",
                    models.BooleanField(default=False, editable=False, verbose_name="asks people to sign in"),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("not-connected", "not-connected"),
                            ("connecting", "connecting"),
                            ("authenticating", "authenticating"),
                            ("ready", "ready"),
                            ("failed", "failed"),
                        ],
                        default=tools_app.core.mcp.servers.McpState["NOT_CONNECTED"],
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("error", models.TextField(blank=True, default="", verbose_name="error")),
                ("failures", models.PositiveIntegerField(default=0)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("catalogue", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("fingerprint", models.CharField(blank=True, default="", editable=False, max_length=64)),
                ("accepted", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("is_reviewed", models.BooleanField(default=False, editable=False, verbose_name="reviewed")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("listed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP server",
                "verbose_name_plural": "MCP servers",
                "db_table": "think_tools_mcp_server",
                "indexes": [
                    models.Index(fields=["scope", "owner"], name="think_mcp_scope"),
                    models.Index(fields=["instance_id"], name="think_mcp_instance"),
                ],
            },
        ),
        migrations.CreateModel(
            name="McpSignIn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("grant", models.TextField(blank=True, default="", editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("version", models.PositiveIntegerField(default=0)),
                ("refreshing_until", models.DateTimeField(blank=True, null=True)),
                ("pending", models.TextField(blank=True, default="", editable=False)),
                (
                    "pending_hash",
                    models.CharField(blank=True, db_index=True, default="", editable=False, max_length=64),
                ),
                ("pending_session", models.CharField(blank=True, default="", editable=False, max_length=64)),
                ("pending_until", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sign_ins", to="think_tools.mcpserver"
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in at an MCP server",
                "verbose_name_plural": "sign-ins at MCP servers",
                "db_table": "think_tools_mcp_sign_in",
                "constraints": [models.UniqueConstraint(fields=("server", "owner"), name="think_mcp_sign_in")],
            },
        ),
        migrations.CreateModel(
            name="PermissionRule",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=tools_app.models.permissions.new_rule_id,
                        editable=False,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "level",
                    models.CharField(
                        choices=[
                            ("site", "the site's"),
                            ("class", "an agent's"),
                            ("owner", "a person's"),
                            ("conversation", "a conversation's"),
                        ],
                        max_length=16,
                        verbose_name="whose",
                    ),
                ),
                ("agent", models.CharField(blank=True, default="", max_length=128, verbose_name="agent")),
                ("scope", models.CharField(blank=True, default="", max_length=64)),
                (
                    "action",
                    models.CharField(
                        choices=[("allow", "runs"), ("ask", "asks a person"), ("deny", "is refused")],
                        max_length=8,
                        verbose_name="what happens",
                    ),
                ),
                ("key", models.CharField(max_length=128, verbose_name="tool")),
                ("pattern", models.CharField(default="*", max_length=1000, verbose_name="pattern")),
                ("position", models.IntegerField(default=0, verbose_name="position")),
                ("via", models.CharField(blank=True, default="", max_length=16, verbose_name="came by")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="expires")),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "rule about calls",
                "verbose_name_plural": "rules about calls",
                "ordering": ["position", "created_at", "id"],
                "indexes": [
                    models.Index(fields=["owner", "scope"], name="think_rule_owner"),
                    models.Index(
                        condition=models.Q(("scope", ""), _negated=True), fields=["scope"], name="think_rule_scope"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("agent", ""), ("level", "site"), ("owner", None), ("scope", "")),
                            models.Q(
                                ("level", "class"),
                                ("owner", None),
                                ("scope", ""),
                                models.Q(("agent", ""), _negated=True),
                            ),
                            models.Q(("agent", ""), ("level", "owner"), ("owner__isnull", False), ("scope", "")),
                            models.Q(("agent", ""), ("level", "conversation"), models.Q(("scope", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="think_rule_level",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StoredWorkspace",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=tools_app.models.workspaces.new_workspace_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        default="default",
                        max_length=64,
                        validators=[django.core.validators.RegexValidator("^[a-zA-Z][a-zA-Z0-9_]*\\Z")],
                        verbose_name="name",
                    ),
                ),
                ("title", models.CharField(blank=True, default="", max_length=100, verbose_name="title")),
                ("root", models.CharField(blank=True, default="", max_length=4096)),
                ("file_count", models.PositiveBigIntegerField(default=0)),
                ("directory_count", models.PositiveBigIntegerField(default=1, verbose_name="directories")),
                ("link_count", models.PositiveBigIntegerField(default=0)),
                ("byte_count", models.PositiveBigIntegerField(default=0)),
                ("object_count", models.PositiveBigIntegerField(default=0)),
                ("version", models.PositiveBigIntegerField(default=0, verbose_name="version")),
                ("kept_turn_id", models.CharField(blank=True, default="", max_length=64)),
                ("kept_bytes", models.PositiveBigIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("modified_at", models.DateTimeField(auto_now_add=True, verbose_name="changed")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "workspace",
                "verbose_name_plural": "workspaces",
                "db_table": "think_tools_workspace",
                "indexes": [models.Index(fields=["-modified_at"], name="think_workspace_recent")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("root", ""), _negated=True), fields=("root",), name="think_workspace_root"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FileBackup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("turn_id", models.CharField(max_length=64)),
                ("step", models.PositiveBigIntegerField(default=0)),
                ("path", thinkproject.kernel.fields.CodePointText(max_length=4096)),
                ("path_key", thinkproject.kernel.fields.CodePointText(max_length=400)),
                ("kind", thinkproject.kernel.fields.CodePointText(blank=True, default="", max_length=16)),
                ("media_type", models.CharField(blank=True, default="", max_length=255)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("target", models.CharField(blank=True, default="", max_length=4096)),
                ("storage_name", models.CharField(blank=True, default="", max_length=255)),
                ("origin", models.CharField(blank=True, default="", max_length=8)),
                ("content", models.BinaryField(null=True)),
                ("is_cut", models.BooleanField(default=False)),
                ("version_before", models.PositiveBigIntegerField(null=True)),
                ("version_after", models.PositiveBigIntegerField(null=True)),
                ("kind_after", thinkproject.kernel.fields.CodePointText(blank=True, default="", max_length=16)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="backups",
                        to="think_tools.storedworkspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "file before a turn",
                "verbose_name_plural": "files before turns",
                "indexes": [
                    models.Index(fields=["workspace", "path_key"], name="think_file_backup_path"),
                    models.Index(fields=["created_at"], name="think_file_backup_age"),
                    models.Index(
                        condition=models.Q(("storage_name", ""), _negated=True),
                        fields=["storage_name"],
                        name="think_file_backup_object",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("turn_id", "workspace", "path_key", "step"), name="think_file_backup"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolCallRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("turn_id", models.CharField(max_length=64)),
                ("scope", models.CharField(blank=True, default="", max_length=64)),
                ("call_id", models.CharField(max_length=128, verbose_name="call id")),
                ("tool_name", models.CharField(max_length=64, verbose_name="tool")),
                ("input", thinkproject.kernel.fields.JSONText(default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("asked", "asked"),
                            ("approved", "approved"),
                            ("early", "early"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("denied", "denied"),
                        ],
                        default=tools_app.core.tool_calls.CallStatus["RUNNING"],
                        max_length=16,
                    ),
                ),
                ("output", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("details", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("attempt", models.PositiveIntegerField(default=1, verbose_name="attempt")),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("approval_id", models.CharField(blank=True, default="", max_length=128, verbose_name="approval id")),
                ("question", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("edited_input", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("wait_key", models.CharField(blank=True, default="", max_length=150)),
                ("continues", models.BooleanField(default=False, verbose_name="goes on by itself")),
                ("lasting", models.BooleanField(default=False, verbose_name="stays open")),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="expires")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("settled_at", models.DateTimeField(blank=True, null=True, verbose_name="settled")),
                (
                    "executor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="think_fibers.fiber",
                        verbose_name="job",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool call",
                "verbose_name_plural": "tool calls",
                "permissions": [("run_calls_of_all", "Can run the calls of all users in an executor")],
                "indexes": [
                    models.Index(fields=["-created_at"], name="think_tool_call_recent"),
                    models.Index(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    tools_app.core.tool_calls.CallStatus["APPROVED"],
                                    tools_app.core.tool_calls.CallStatus["ASKED"],
                                    tools_app.core.tool_calls.CallStatus["WAITING"],
                                ],
                            )
                        ),
                        fields=["scope"],
                        name="think_tool_call_open",
                    ),
                    models.Index(
                        condition=models.Q(("status", tools_app.core.tool_calls.CallStatus["ASKED"])),
                        fields=["owner", "-id"],
                        name="think_tool_call_asked",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("expires_at__isnull", False), ("status", tools_app.core.tool_calls.CallStatus["ASKED"])
                        ),
                        fields=["expires_at"],
                        name="think_tool_call_expiring",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("turn_id", "call_id"), name="think_tool_call")],
            },
        ),
        migrations.CreateModel(
            name="ApprovalEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("asked", "Asked"),
                            ("approved", "Approved"),
                            ("denied", "Denied"),
                            ("expired", "Expired"),
                            ("superseded", "Not answered"),
                            ("allowed", "Allowed by a rule"),
                            ("refused", "Refused by a rule"),
                        ],
                        max_length=16,
                        verbose_name="event",
                    ),
                ),
                ("via", models.CharField(max_length=16, verbose_name="via")),
                ("reason", models.CharField(blank=True, default="", max_length=1000, verbose_name="reason")),
                ("input_hash", models.CharField(max_length=64, verbose_name="hash of the arguments")),
                ("edited_input", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="think_tools.toolcallrecord",
                    ),
                ),
            ],
            options={
                "verbose_name": "decision",
                "verbose_name_plural": "decisions",
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceAttachment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=64)),
                (
                    "name",
                    models.CharField(
                        default="default",
                        max_length=64,
                        validators=[django.core.validators.RegexValidator("^[a-zA-Z][a-zA-Z0-9_]*\\Z")],
                        verbose_name="name",
                    ),
                ),
                ("can_write", models.BooleanField(default=True, verbose_name="may write")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="think_tools.storedworkspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "attached workspace",
                "verbose_name_plural": "attached workspaces",
                "constraints": [models.UniqueConstraint(fields=("scope", "name"), name="think_workspace_scope")],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", thinkproject.kernel.fields.CodePointText(max_length=4096, verbose_name="path")),
                ("path_key", thinkproject.kernel.fields.CodePointText(max_length=400)),
                ("parent_key", thinkproject.kernel.fields.CodePointText(max_length=400)),
                ("name", thinkproject.kernel.fields.CodePointText(max_length=255)),
                (
                    "kind",
                    thinkproject.kernel.fields.CodePointText(
                        choices=[("file", "file"), ("directory", "directory"), ("symlink", "symlink")], max_length=16
                    ),
                ),
                ("media_type", models.CharField(blank=True, default="", max_length=255)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("version", models.PositiveBigIntegerField(verbose_name="version")),
                ("target", models.CharField(blank=True, default="", max_length=4096)),
                (
                    "storage_name",
                    models.CharField(blank=True, default="", max_length=255, verbose_name="name in storage"),
                ),
                ("created_at", models.DateTimeField(verbose_name="created")),
                ("modified_at", models.DateTimeField(verbose_name="changed")),
                (
                    "origin",
                    models.CharField(
                        blank=True, choices=[("file", "file"), ("mcp", "mcp"), ("web", "web")], default="", max_length=8
                    ),
                ),
                ("content", models.BinaryField(null=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="think_tools.storedworkspace",
                        verbose_name="workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "workspace entry",
                "verbose_name_plural": "workspace entries",
                "indexes": [
                    models.Index(fields=["workspace", "parent_key", "kind", "name"], name="think_workspace_children"),
                    models.Index(
                        condition=models.Q(("storage_name", ""), _negated=True),
                        fields=["storage_name"],
                        name="think_workspace_object",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("workspace", "path_key"), name="think_workspace_path")],
            },
        ),
        migrations.CreateModel(
            name="ActionRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=64)),
                ("action", models.CharField(max_length=64, verbose_name="action")),
                ("key", models.CharField(max_length=255, verbose_name="key")),
                ("is_explicit", models.BooleanField(default=False, verbose_name="has a key of its own")),
                ("input", thinkproject.kernel.fields.JSONText(default=dict)),
                ("input_hash", models.CharField(max_length=64)),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "pending"), ("settled", "settled"), ("failed", "failed")],
                        default=tools_app.core.action_rules.ActionStatus["PENDING"],
                        max_length=16,
                    ),
                ),
                ("output", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("reply", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("attempt", models.PositiveIntegerField(default=1, verbose_name="attempt")),
                ("attempt_token", models.CharField(max_length=64)),
                ("lease_until", models.DateTimeField(verbose_name="lease until")),
                ("undo", models.CharField(blank=True, default="", max_length=100)),
                (
                    "undo_status",
                    models.CharField(
                        blank=True,
                        choices=[("running", "running"), ("done", "done"), ("failed", "failed")],
                        default=tools_app.core.action_rules.UndoStatus["NONE"],
                        max_length=16,
                    ),
                ),
                ("undo_output", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("turn_id", models.CharField(blank=True, default="", max_length=64)),
                ("call_id", models.CharField(blank=True, default="", max_length=128, verbose_name="call id")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("settled_at", models.DateTimeField(blank=True, null=True, verbose_name="settled")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "action",
                "verbose_name_plural": "actions",
                "db_table": "think_tools_action",
                "indexes": [
                    models.Index(fields=["owner", "-id"], name="think_tool_action_owner"),
                    models.Index(fields=["status", "created_at"], name="think_tool_action_age"),
                ],
                "constraints": [models.UniqueConstraint(fields=("scope", "action", "key"), name="think_tool_action")],
            },
        ),
        migrations.RunPython(install, remove),
    ]
