"""The tables of agents, turns, streams and people."""

import chat.models.conversations
import chat.models.imports
import chat.models.members
import chat.models.oauth
import chat.models.reverts
import chat.models.runs
import datetime as dt
import django.db.models.deletion
import django.db.models.functions.datetime
import thinkproject.kernel.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("think_chat", "0001_initial"),
        ("think_chat", "0002_recent_turns"),
        ("think_chat", "0003_segment_epoch"),
        ("think_chat", "0004_client_tools"),
        ("think_chat", "0005_last_body"),
        ("think_chat", "0006_ancestors"),
        ("think_chat", "0007_cost_and_pins"),
        ("think_chat", "0008_meta"),
        ("think_chat", "0009_message_count"),
        ("think_chat", "0010_turn_retry"),
        ("think_chat", "0011_model_choice"),
        ("think_chat", "0012_admin_names"),
        ("think_chat", "0013_field_names"),
        ("think_chat", "0014_programs"),
        ("think_chat", "0015_agent_runs"),
        ("think_chat", "0016_model_report"),
        ("think_chat", "0017_runs_without_cascade"),
        ("think_chat", "0018_scheduled_functions"),
        ("think_chat", "0019_children_of_ended_runs"),
        ("think_chat", "0020_archive_imports"),
        ("think_chat", "0021_durable_streams"),
        ("think_chat", "0022_steering_turns"),
        ("think_chat", "0023_reverts"),
        ("think_chat", "0024_members"),
        ("think_chat", "0025_turn_author"),
        ("think_chat", "0026_change_feed"),
        ("think_chat", "0027_agent_messages"),
        ("think_chat", "0028_turn_retry_of"),
        ("think_chat", "0029_kept_changes"),
    ]

    dependencies = [
        ("think_fibers", "0001_tables"),
        ("think_sessions", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FeedHead",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                ("seq", models.PositiveBigIntegerField(default=0, verbose_name="last change")),
                ("floor", models.PositiveBigIntegerField(default=0, verbose_name="kept from")),
                ("is_open", models.BooleanField(default=True, verbose_name="open")),
                (
                    "opened_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="opened"),
                ),
                (
                    "used_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="last used"
                    ),
                ),
            ],
            options={
                "verbose_name": "change feed",
                "verbose_name_plural": "change feeds",
            },
        ),
        migrations.CreateModel(
            name="MessageCount",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("minute_started_at", models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC))),
                ("minute_count", models.PositiveBigIntegerField(default=0)),
                ("message_count", models.PositiveBigIntegerField(default=0)),
                ("byte_count", models.PositiveBigIntegerField(default=0)),
                ("counted_at", models.DateTimeField(default=dt.datetime(1970, 1, 1, 0, 0, tzinfo=dt.UTC))),
            ],
            options={
                "verbose_name": "message count",
                "verbose_name_plural": "message counts",
            },
        ),
        migrations.CreateModel(
            name="AgentInstance",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.conversations.new_instance_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("ancestors", thinkproject.kernel.fields.JSONText(default=list)),
                ("agent", models.CharField(max_length=200, verbose_name="agent")),
                ("name", models.CharField(max_length=255, verbose_name="name")),
                ("title", models.CharField(blank=True, default="", max_length=100)),
                ("title_is_provisional", models.BooleanField(default=False)),
                ("state", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="state")),
                ("state_version", models.PositiveBigIntegerField(default=0, verbose_name="version of the state")),
                ("config", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("config_version", models.PositiveBigIntegerField(default=0)),
                ("model_choice", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("last_body", thinkproject.kernel.fields.JSONText(blank=True, default=dict)),
                ("client_tools", thinkproject.kernel.fields.JSONText(default=list)),
                ("generation", models.PositiveBigIntegerField(default=0, verbose_name="generation")),
                ("turn_count", models.PositiveBigIntegerField(default=0, verbose_name="turns")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("active_at", models.DateTimeField(auto_now_add=True, verbose_name="last active")),
                ("seen_at", models.DateTimeField(blank=True, null=True, verbose_name="last seen by its owner")),
                ("archived_at", models.DateTimeField(blank=True, null=True, verbose_name="archived")),
                ("pinned_at", models.DateTimeField(blank=True, null=True, verbose_name="pinned")),
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
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="think_chat.agentinstance",
                        verbose_name="parent",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
                "indexes": [models.Index(fields=["owner", "-active_at", "id"], name="think_instance_recent")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", False), ("parent", None)),
                        fields=("owner", "agent", "name"),
                        name="think_instance_owned",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None), ("parent", None)),
                        fields=("agent", "name"),
                        name="think_instance_shared",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("parent__isnull", False)),
                        fields=("parent", "agent", "name"),
                        name="think_instance_child",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("prefix", models.CharField(db_index=True, max_length=16, verbose_name="prefix")),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("scopes", thinkproject.kernel.fields.JSONText(default=list, verbose_name="limited to")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("used_at", models.DateTimeField(blank=True, null=True, verbose_name="last used")),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="expires")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="revoked")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
            },
        ),
        migrations.CreateModel(
            name="ArchiveImport",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.imports.new_import_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("name", models.CharField(max_length=255, verbose_name="name")),
                ("byte_size", models.PositiveBigIntegerField(verbose_name="bytes")),
                ("storage_name", models.CharField(blank=True, max_length=255, verbose_name="name in storage")),
                ("agent", models.CharField(blank=True, default="", max_length=200, verbose_name="agent")),
                ("preview", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="preview")),
                ("report", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="report")),
                ("error_text", models.TextField(blank=True, default="", verbose_name="error")),
                ("seen_count", models.PositiveBigIntegerField(default=0, verbose_name="conversations looked at")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_fibers.fiber",
                    ),
                ),
                (
                    "scan",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_fibers.fiber",
                    ),
                ),
            ],
            options={
                "verbose_name": "import",
                "verbose_name_plural": "imports",
                "indexes": [models.Index(fields=["owner", "-created_at"], name="think_import_recent")],
            },
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.conversations.new_attachment_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("name", models.CharField(max_length=255, verbose_name="name")),
                ("media_type", models.CharField(max_length=127, verbose_name="media type")),
                ("byte_size", models.PositiveBigIntegerField()),
                ("sha256", models.CharField(max_length=64, verbose_name="checksum (SHA-256)")),
                ("storage_name", models.CharField(max_length=255, verbose_name="name in storage")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("claimed_at", models.DateTimeField(blank=True, null=True, verbose_name="in a message since")),
                (
                    "instance",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="think_chat.agentinstance",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "file",
                "verbose_name_plural": "files",
                "indexes": [models.Index(fields=["claimed_at", "created_at"], name="think_attachment_orphans")],
            },
        ),
        migrations.CreateModel(
            name="DurableStream",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=400, verbose_name="path")),
                ("content_type", models.CharField(max_length=200, verbose_name="content type")),
                ("is_json", models.BooleanField(default=False, verbose_name="JSON messages")),
                ("tail", models.PositiveBigIntegerField(default=0, verbose_name="end")),
                ("kept_bytes", models.PositiveBigIntegerField(default=0, verbose_name="bytes kept")),
                (
                    "ttl_seconds",
                    models.PositiveBigIntegerField(null=True, verbose_name="lifetime after the last use (s)"),
                ),
                ("expires_at", models.DateTimeField(null=True, verbose_name="expires")),
                ("last_seq", models.CharField(blank=True, default="", max_length=400)),
                ("fork_base", models.PositiveBigIntegerField(default=0)),
                ("fork_sub", models.PositiveBigIntegerField(default=0)),
                ("fork_at", models.PositiveBigIntegerField(default=0, verbose_name="forked at")),
                ("depth", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("used_at", models.DateTimeField(verbose_name="last used")),
                ("closed_at", models.DateTimeField(null=True, verbose_name="closed")),
                ("closed_by", thinkproject.kernel.fields.JSONText(null=True)),
                ("deleted_at", models.DateTimeField(null=True, verbose_name="deleted")),
                (
                    "forked_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="forks",
                        to="think_chat.durablestream",
                        verbose_name="fork of",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "durable stream",
                "verbose_name_plural": "durable streams",
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="think_durable_stream_end",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("owner", "path"), name="think_durable_stream_path")],
            },
        ),
        migrations.CreateModel(
            name="FeedChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveBigIntegerField()),
                ("instance_id", models.CharField(max_length=64)),
                ("type", models.CharField(max_length=16)),
                ("key", models.CharField(max_length=300)),
                ("op", models.CharField(max_length=8)),
                ("at", models.DateTimeField()),
                (
                    "feed",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="think_chat.feedhead",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of a change feed",
                "verbose_name_plural": "entries of change feeds",
                "constraints": [models.UniqueConstraint(fields=("feed", "seq"), name="think_feed_change")],
            },
        ),
        migrations.CreateModel(
            name="ImportedConversation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("product", models.CharField(max_length=32)),
                ("source_id", models.CharField(max_length=128)),
                ("message_count", models.PositiveBigIntegerField()),
                ("file_count", models.PositiveBigIntegerField(default=0)),
                ("left_out", thinkproject.kernel.fields.JSONText(default=dict)),
                (
                    "archive",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="conversations",
                        to="think_chat.archiveimport",
                    ),
                ),
                (
                    "instance",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="think_chat.agentinstance"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "imported conversation",
                "verbose_name_plural": "imported conversations",
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "product", "source_id"), name="think_imported_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.members.new_invitation_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("reader", "reads"), ("writer", "writes"), ("approver", "writes and approves")],
                        max_length=16,
                        verbose_name="role",
                    ),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to="think_chat.agentinstance",
                        verbose_name="conversation",
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="invited by",
                    ),
                ),
            ],
            options={
                "verbose_name": "invitation",
                "verbose_name_plural": "invitations",
            },
        ),
        migrations.CreateModel(
            name="KeptChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_changes",
                        to="think_chat.agentinstance",
                    ),
                ),
            ],
            options={
                "verbose_name": "kept change",
                "verbose_name_plural": "kept changes",
                "constraints": [models.UniqueConstraint(fields=("instance", "digest"), name="think_kept_change")],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.members.new_member_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("reader", "reads"), ("writer", "writes"), ("approver", "writes and approves")],
                        max_length=16,
                        verbose_name="role",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="think_chat.agentinstance",
                        verbose_name="conversation",
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="invited by",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
            ],
            options={
                "verbose_name": "member",
                "verbose_name_plural": "members",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at", None)), fields=("instance", "user"), name="think_member_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OAuthClient",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.oauth.new_client_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("redirect_uris", thinkproject.kernel.fields.JSONText(default=list)),
                ("network", models.CharField(blank=True, default="", max_length=45)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "connected program",
                "verbose_name_plural": "connected programs",
                "indexes": [models.Index(fields=["network", "created_at"], name="think_oauth_client_network")],
            },
        ),
        migrations.CreateModel(
            name="OAuthGrant",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.oauth.new_grant_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("agent", models.CharField(max_length=200, verbose_name="agent")),
                ("resource", models.CharField(max_length=500, verbose_name="address")),
                ("scopes", thinkproject.kernel.fields.JSONText(default=list)),
                ("code_hash", models.CharField(max_length=64, unique=True)),
                ("code_challenge", models.CharField(max_length=128)),
                ("code_expires_at", models.DateTimeField()),
                ("redirect_uri", models.TextField()),
                ("redirect_is_explicit", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("exchanged_at", models.DateTimeField(blank=True, null=True)),
                ("used_at", models.DateTimeField(blank=True, null=True, verbose_name="last used")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="grants", to="think_chat.oauthclient"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "grant to a program",
                "verbose_name_plural": "grants to programs",
                "indexes": [models.Index(fields=["user", "-created_at"], name="think_oauth_grant_user")],
            },
        ),
        migrations.CreateModel(
            name="OAuthToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("access", "Access"), ("refresh", "Refresh")], max_length=8)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("replaced_at", models.DateTimeField(blank=True, null=True)),
                (
                    "grant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tokens", to="think_chat.oauthgrant"
                    ),
                ),
            ],
            options={
                "verbose_name": "token of a program",
                "verbose_name_plural": "tokens of programs",
            },
        ),
        migrations.CreateModel(
            name="Revert",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.reverts.new_revert_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("session_id", models.CharField(max_length=64)),
                ("turn_id", models.CharField(max_length=64)),
                ("includes_files", models.BooleanField(default=False, verbose_name="files")),
                ("includes_messages", models.BooleanField(default=False, verbose_name="messages")),
                ("file_count", models.PositiveIntegerField(default=0, verbose_name="changed files")),
                ("left_count", models.PositiveIntegerField(default=0)),
                ("leaf_before", models.CharField(blank=True, default="", max_length=128)),
                ("leaf_after", models.CharField(blank=True, default="", max_length=128)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reverts",
                        to="think_chat.agentinstance",
                    ),
                ),
                (
                    "redoes",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="redone_by",
                        to="think_chat.revert",
                    ),
                ),
            ],
            options={
                "verbose_name": "undo",
                "verbose_name_plural": "undos",
                "indexes": [models.Index(fields=["instance", "created_at"], name="think_revert_recent")],
            },
        ),
        migrations.CreateModel(
            name="SignInLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in link",
                "verbose_name_plural": "sign-in links",
            },
        ),
        migrations.CreateModel(
            name="StreamEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("end", models.PositiveBigIntegerField()),
                ("data", models.BinaryField()),
                (
                    "stream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="think_chat.durablestream",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of a durable stream",
                "verbose_name_plural": "entries of durable streams",
                "constraints": [models.UniqueConstraint(fields=("stream", "end"), name="think_stream_entry_end")],
            },
        ),
        migrations.CreateModel(
            name="StreamProducer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("producer", models.CharField(max_length=200)),
                ("epoch", models.PositiveBigIntegerField()),
                ("seq", models.PositiveBigIntegerField()),
                (
                    "stream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="producers",
                        to="think_chat.durablestream",
                    ),
                ),
            ],
            options={
                "verbose_name": "writer of a durable stream",
                "verbose_name_plural": "writers of durable streams",
                "constraints": [models.UniqueConstraint(fields=("stream", "producer"), name="think_stream_producer")],
            },
        ),
        migrations.CreateModel(
            name="StreamSegment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("stream", models.CharField(max_length=64)),
                ("first_offset", models.PositiveBigIntegerField(verbose_name="first offset")),
                ("last_offset", models.PositiveBigIntegerField(verbose_name="last offset")),
                ("data", models.TextField(verbose_name="data")),
                ("epoch", models.CharField(blank=True, default="", max_length=32)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
            ],
            options={
                "verbose_name": "stream segment",
                "verbose_name_plural": "stream segments",
                "constraints": [
                    models.UniqueConstraint(fields=("stream", "first_offset"), name="think_segment_offset")
                ],
            },
        ),
        migrations.CreateModel(
            name="StreamSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                (
                    "kind",
                    models.CharField(
                        choices=[("webhook", "by a webhook"), ("pull-wake", "by an entry of a stream")],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("pattern", models.CharField(blank=True, default="", max_length=400, verbose_name="pattern")),
                ("configuration", models.CharField(max_length=64)),
                ("url", models.CharField(blank=True, default="", max_length=2000, verbose_name="address")),
                ("root", models.CharField(max_length=400)),
                (
                    "wake_path",
                    models.CharField(blank=True, default="", max_length=400, verbose_name="path of the wakes"),
                ),
                ("lease_ms", models.PositiveIntegerField(verbose_name="lease (ms)")),
                ("description", models.CharField(blank=True, default="", max_length=1000, verbose_name="description")),
                ("generation", models.PositiveBigIntegerField(default=0, verbose_name="wakes")),
                ("wake_id", models.CharField(blank=True, default="", max_length=64)),
                ("holder", models.CharField(blank=True, default="", max_length=200, verbose_name="worker")),
                ("leased_until", models.DateTimeField(null=True, verbose_name="leased until")),
                ("failures", models.PositiveIntegerField(default=0, verbose_name="failures in a row")),
                ("error_text", models.CharField(blank=True, default="", max_length=500, verbose_name="last failure")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "subscription of streams",
                "verbose_name_plural": "subscriptions of streams",
                "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="think_subscription_name")],
            },
        ),
        migrations.CreateModel(
            name="SubscriptionLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=400)),
                ("is_explicit", models.BooleanField(default=False)),
                ("acked", models.PositiveBigIntegerField(default=0)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links",
                        to="think_chat.streamsubscription",
                    ),
                ),
            ],
            options={
                "verbose_name": "subscribed stream",
                "verbose_name_plural": "subscribed streams",
                "indexes": [models.Index(fields=["owner", "path"], name="think_subscription_path")],
                "constraints": [
                    models.UniqueConstraint(fields=("subscription", "path"), name="think_subscription_link")
                ],
            },
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.conversations.new_turn_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[("queue", "Queue"), ("steer", "Steer"), ("interrupt", "Interrupt")],
                        default="queue",
                        max_length=16,
                        verbose_name="delivery",
                    ),
                ),
                ("position", models.PositiveBigIntegerField(verbose_name="place in the conversation")),
                ("author", models.CharField(blank=True, default="", max_length=64, verbose_name="author")),
                ("request_id", models.CharField(max_length=128, verbose_name="request id")),
                (
                    "idempotency_key",
                    models.CharField(blank=True, max_length=128, null=True, verbose_name="idempotency key"),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("submit-message", "Submit"),
                            ("regenerate-message", "Regenerate"),
                            ("continue", "Continue"),
                            ("edit-message", "Edit"),
                            ("program", "Program"),
                        ],
                        max_length=32,
                    ),
                ),
                ("generation", models.PositiveBigIntegerField()),
                (
                    "input_ids",
                    thinkproject.kernel.fields.JSONText(default=list, verbose_name="messages of the request"),
                ),
                (
                    "base_id",
                    models.CharField(blank=True, max_length=128, null=True, verbose_name="message to build on"),
                ),
                ("base_is_explicit", models.BooleanField(default=False, verbose_name="names the message to build on")),
                ("assistant_id", models.CharField(max_length=128, verbose_name="id of the answer")),
                ("body", thinkproject.kernel.fields.JSONText(default=dict, verbose_name="custom body")),
                ("options", thinkproject.kernel.fields.JSONText(default=dict, verbose_name="options")),
                ("model_name", models.CharField(blank=True, default="", max_length=200, verbose_name="model")),
                ("input_tokens", models.PositiveBigIntegerField(default=0)),
                ("output_tokens", models.PositiveBigIntegerField(default=0)),
                ("reasoning_tokens", models.PositiveBigIntegerField(default=0)),
                ("cached_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost", models.DecimalField(decimal_places=10, default=0, max_digits=20)),
                ("step_count", models.PositiveIntegerField(default=0, verbose_name="steps")),
                ("changed_file_count", models.PositiveIntegerField(default=0, verbose_name="changed files")),
                ("retry", thinkproject.kernel.fields.JSONText(null=True)),
                ("model_report", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="models")),
                ("error_text", models.TextField(blank=True, default="")),
                ("error_code", models.CharField(blank=True, default="", max_length=64)),
                ("accepted_at", models.DateTimeField(auto_now_add=True, verbose_name="accepted")),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="answered by",
                    ),
                ),
                (
                    "fiber",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="think_fibers.fiber"
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="turns", to="think_chat.agentinstance"
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="parent",
                    ),
                ),
                (
                    "retry_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="answers again after",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to="think_sessions.session"
                    ),
                ),
            ],
            options={
                "verbose_name": "turn",
                "verbose_name_plural": "turns",
                "indexes": [
                    models.Index(fields=["session", "position"], name="think_turn_session"),
                    models.Index(fields=["instance", "accepted_at"], name="think_turn_recent"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("instance", "request_id"), name="think_turn_request"),
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("instance", "idempotency_key"),
                        name="think_turn_idempotency",
                    ),
                    models.UniqueConstraint(fields=("instance", "position"), name="think_turn_position"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentRun",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat.models.runs.new_run_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("run_id", models.CharField(max_length=128, verbose_name="run id")),
                ("agent", models.CharField(max_length=200, verbose_name="agent")),
                ("call_id", models.CharField(blank=True, default="", max_length=200, verbose_name="tool call")),
                ("display_order", models.PositiveIntegerField(default=0, verbose_name="place among the runs")),
                ("display", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="display")),
                ("input_preview", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="input")),
                ("is_detached", models.BooleanField(default=False, verbose_name="detached")),
                ("options", thinkproject.kernel.fields.JSONText(default=dict, verbose_name="options")),
                ("progress", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="progress")),
                ("progress_at", models.DateTimeField(blank=True, null=True, verbose_name="last progress")),
                ("outcome", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="outcome")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created"
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "child",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_chat.agentinstance",
                        verbose_name="child",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="think_chat.agentinstance",
                        verbose_name="parent",
                    ),
                ),
                (
                    "parent_turn",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="runs",
                        to="think_chat.turn",
                        verbose_name="turn of the parent",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="turn of the child",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent run",
                "verbose_name_plural": "agent runs",
                "indexes": [
                    models.Index(fields=["parent", "-created_at"], name="think_run_recent"),
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["owner"], name="think_run_under_way"
                    ),
                    models.Index(
                        condition=models.Q(("child__isnull", False)),
                        fields=["finished_at"],
                        name="think_run_with_child",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("parent", "run_id"), name="think_run_of_parent")],
            },
        ),
        migrations.CreateModel(
            name="AgentMessage",
            fields=[
                ("seq", models.BigAutoField(primary_key=True, serialize=False, verbose_name="number")),
                ("sender", models.CharField(blank=True, default="", max_length=200, verbose_name="sender")),
                ("target", models.CharField(blank=True, default="", max_length=200, verbose_name="to")),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "message"), ("assistant", "answer"), ("system", "failure")],
                        default="user",
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("content", thinkproject.kernel.fields.JSONText(verbose_name="text")),
                ("request_id", models.CharField(blank=True, default="", max_length=64, verbose_name="request id")),
                ("in_reply_to", models.CharField(blank=True, default="", max_length=64, verbose_name="in reply to")),
                ("call_chain", thinkproject.kernel.fields.JSONText(blank=True, default=list, verbose_name="asked by")),
                ("late", models.BooleanField(default=False, verbose_name="late")),
                ("wait", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="sent"
                    ),
                ),
                ("processed_at", models.DateTimeField(blank=True, null=True, verbose_name="processed")),
                (
                    "room",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_messages",
                        to="think_chat.agentinstance",
                        verbose_name="room",
                    ),
                ),
                (
                    "asked_in",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="sent by",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="think_chat.turn",
                        verbose_name="turn",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent message",
                "verbose_name_plural": "agent messages",
                "indexes": [
                    models.Index(
                        condition=models.Q(("processed_at", None)), fields=["room", "target"], name="think_agent_inbox"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=("room", "request_id"),
                        name="think_agent_request",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("in_reply_to", ""), _negated=True),
                        fields=("room", "in_reply_to"),
                        name="think_agent_reply",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TurnSeen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="seen_by", to="think_chat.turn"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "seen turn",
                "verbose_name_plural": "seen turns",
                "constraints": [models.UniqueConstraint(fields=("turn", "user"), name="think_turn_seen")],
            },
        ),
    ]
