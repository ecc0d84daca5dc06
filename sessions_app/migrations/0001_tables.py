"""The tables of conversations, the full-text index over their words, and the triggers of the table that is only appended to."""

import django.db.models.deletion
import sessions_app.models
import thinkproject.kernel.fields
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from sessions_app.search import postgres, sqlite
from thinkproject.kernel import append_only

WORDS = {
    "think_sessions_messagewords": "think_sessions_message",
    "think_sessions_entrywords": "think_sessions_contextentry",
}
APPEND_ONLY = ("think_sessions_contextchange",)


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    index = _index(editor)
    for table, about in WORDS.items():
        for statement in index.install(table, about):
            editor.execute(statement)
    append_only.install(editor.connection, APPEND_ONLY)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.remove(editor.connection, APPEND_ONLY)
    index = _index(editor)
    for table, about in WORDS.items():
        for statement in index.remove(table, about):
            editor.execute(statement)


def _index(editor: BaseDatabaseSchemaEditor) -> postgres.PostgresIndex | sqlite.SqliteIndex:
    return postgres.PostgresIndex() if editor.connection.vendor == "postgresql" else sqlite.SqliteIndex()


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("think_sessions", "0001_initial"),
        ("think_sessions", "0002_conversations"),
        ("think_sessions", "0003_search"),
        ("think_sessions", "0004_fill_search"),
        ("think_sessions", "0005_session_summaries"),
        ("think_sessions", "0006_admin_names"),
        ("think_sessions", "0007_field_names"),
        ("think_sessions", "0008_message_author"),
        ("think_sessions", "0009_append_only"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="EntryWords",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("words", models.TextField()),
                ("tags", models.TextField()),
            ],
            options={
                "verbose_name": "entry words",
                "verbose_name_plural": "entry words",
            },
        ),
        migrations.CreateModel(
            name="MessageWords",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("words", models.TextField()),
                ("tags", models.TextField()),
            ],
            options={
                "verbose_name": "message words",
                "verbose_name_plural": "message words",
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message_id", models.CharField(max_length=128, verbose_name="message id")),
                ("depth", models.PositiveIntegerField(default=0, verbose_name="depth")),
                ("role", models.CharField(max_length=16)),
                ("content", thinkproject.kernel.fields.JSONText()),
                ("byte_size", models.PositiveIntegerField(default=0)),
                ("turn_id", models.CharField(blank=True, default="", max_length=64, verbose_name="turn")),
                ("author", models.CharField(blank=True, default="", max_length=64, verbose_name="author")),
                ("change_seq", models.PositiveBigIntegerField(default=0, verbose_name="number of its last change")),
                ("queued_position", models.PositiveBigIntegerField(blank=True, null=True)),
                ("pruned_calls", thinkproject.kernel.fields.JSONText(blank=True, default=list)),
                ("placed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="think_sessions.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "verbose_name_plural": "messages",
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=sessions_app.models.new_session_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("scope", models.CharField(blank=True, default="", max_length=200, verbose_name="scope")),
                ("name", models.CharField(blank=True, default="", max_length=200)),
                (
                    "end_reason",
                    models.CharField(blank=True, default="", max_length=64, verbose_name="reason for the end"),
                ),
                ("change_seq", models.PositiveBigIntegerField(default=0, verbose_name="changes")),
                ("archived_depth", models.PositiveIntegerField(default=0)),
                ("system_prompt", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("loaded_keys", thinkproject.kernel.fields.JSONText(blank=True, default=list)),
                ("source", models.CharField(blank=True, default="", max_length=64, verbose_name="source")),
                ("model_name", models.CharField(blank=True, default="", max_length=200, verbose_name="model")),
                ("input_tokens", models.PositiveBigIntegerField(default=0, verbose_name="tokens in")),
                ("output_tokens", models.PositiveBigIntegerField(default=0, verbose_name="tokens out")),
                ("reasoning_tokens", models.PositiveBigIntegerField(default=0, verbose_name="tokens of reasoning")),
                ("cached_tokens", models.PositiveBigIntegerField(default=0, verbose_name="tokens from a cache")),
                ("cost", models.DecimalField(decimal_places=10, default=0, max_digits=20, verbose_name="cost")),
                (
                    "max_cost",
                    models.DecimalField(
                        blank=True, decimal_places=10, max_digits=20, null=True, verbose_name="cost limit"
                    ),
                ),
                ("auto_compaction", models.BooleanField(blank=True, null=True)),
                ("pinned_at", models.DateTimeField(blank=True, null=True, verbose_name="pinned")),
                ("archived_at", models.DateTimeField(blank=True, null=True, verbose_name="archived")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated_at", models.DateTimeField(auto_now_add=True, verbose_name="changed")),
                (
                    "active_leaf",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_sessions.message",
                    ),
                ),
                (
                    "forked_from",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="think_sessions.message",
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
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forks",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "history",
                "verbose_name_plural": "histories",
                "indexes": [models.Index(fields=["scope", "-updated_at", "id"], name="think_session_recent")],
            },
        ),
        migrations.CreateModel(
            name="ContextEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=64, verbose_name="label")),
                ("key", models.CharField(max_length=200, verbose_name="key")),
                ("title", models.CharField(blank=True, default="", max_length=200, verbose_name="title")),
                ("description", models.CharField(blank=True, default="", max_length=500, verbose_name="description")),
                ("content", models.TextField(blank=True, default="", verbose_name="text")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="context_entries",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "context entry",
                "verbose_name_plural": "context entries",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("owner", None), ("session__isnull", False)),
                            models.Q(("owner__isnull", False), ("session", None)),
                            _connector="OR",
                        ),
                        name="think_entry_of_one",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)),
                        fields=("session", "label", "key"),
                        name="think_entry_of_session",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("session", None)),
                        fields=("owner", "label", "key"),
                        name="think_entry_of_user",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ContextChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=320, verbose_name="subject")),
                ("action", models.CharField(max_length=16, verbose_name="action")),
                ("before", models.TextField(blank=True, default="")),
                ("after", models.TextField(blank=True, default="")),
                ("via", models.CharField(max_length=16, verbose_name="via")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                (
                    "actor",
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
                    ),
                ),
                (
                    "made_in",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="think_sessions.session",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="context_changes",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "change",
                "verbose_name_plural": "changes",
                "indexes": [
                    models.Index(fields=["session", "-id"], name="think_change_session"),
                    models.Index(fields=["owner", "-id"], name="think_change_owner"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("owner", None), ("session__isnull", False)),
                            models.Q(("owner__isnull", False), ("session", None)),
                            _connector="OR",
                        ),
                        name="think_change_of_one",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ContextBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=64, verbose_name="label")),
                ("content", models.TextField(blank=True, default="", verbose_name="text")),
                ("description", models.CharField(blank=True, default="", max_length=500, verbose_name="description")),
                ("max_tokens", models.PositiveIntegerField(blank=True, null=True, verbose_name="token limit")),
                ("is_runtime", models.BooleanField(default=False, verbose_name="added by the agent")),
                ("is_removed", models.BooleanField(default=False, verbose_name="removed")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="context_blocks",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "context block",
                "verbose_name_plural": "context blocks",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("owner", None), ("session__isnull", False)),
                            models.Q(("owner__isnull", False), ("session", None)),
                            _connector="OR",
                        ),
                        name="think_block_of_one",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)), fields=("session", "label"), name="think_block_of_session"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("session", None)), fields=("owner", "label"), name="think_block_of_user"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Compaction",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=sessions_app.models.new_compaction_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("first_id", models.CharField(max_length=128, verbose_name="first message")),
                ("last_id", models.CharField(max_length=128, verbose_name="last message")),
                ("summary", models.TextField(verbose_name="summary")),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("manual", "On request"),
                            ("auto", "The history was long"),
                            ("overflow", "A request was too long"),
                            ("added", "Added by code"),
                        ],
                        max_length=16,
                        verbose_name="reason",
                    ),
                ),
                ("model_name", models.CharField(blank=True, default="", max_length=200, verbose_name="model")),
                ("message_count", models.PositiveIntegerField(default=0, verbose_name="messages")),
                ("tokens_before", models.PositiveIntegerField(default=0)),
                ("tokens_after", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("edited_at", models.DateTimeField(blank=True, null=True, verbose_name="edited")),
                ("undone_at", models.DateTimeField(blank=True, null=True, verbose_name="undone")),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked for by",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compactions",
                        to="think_sessions.session",
                    ),
                ),
            ],
            options={
                "verbose_name": "summary",
                "verbose_name_plural": "summaries",
                "indexes": [models.Index(fields=["session", "created_at"], name="think_compaction_session")],
            },
        ),
        migrations.CreateModel(
            name="SessionSummary",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="summary",
                        serialize=False,
                        to="think_sessions.session",
                    ),
                ),
                ("text", models.TextField()),
                ("leaf_id", models.CharField(blank=True, default="", max_length=128)),
                ("change_seq", models.PositiveBigIntegerField(default=0)),
                ("model_name", models.CharField(blank=True, default="", max_length=200)),
                ("written_at", models.DateTimeField()),
                (
                    "written_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session summary",
                "verbose_name_plural": "session summaries",
            },
        ),
        migrations.AddField(
            model_name="message",
            name="session",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="messages",
                to="think_sessions.session",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["session", "change_seq"], name="think_message_changes"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("parent", None), ("placed_at__isnull", False)),
                fields=["session"],
                name="think_message_roots",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["turn_id"], name="think_message_turn"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("placed_at", None)),
                fields=["session", "queued_position"],
                name="think_message_queue",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("message_id", "session"), name="think_message_id"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("placed_at__isnull", False), ("queued_position", None)),
                    models.Q(("parent", None), ("placed_at", None), ("queued_position__isnull", False)),
                    _connector="OR",
                ),
                name="think_message_placed_or_queued",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(("parent", models.F("id")), _negated=True), name="think_message_not_own_parent"
            ),
        ),
        migrations.RunPython(install, remove),
    ]
