"""Tables of words, and the full-text index over them that the database keeps. `0004_fill_search` fills them."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from sessions_app.search import postgres, sqlite

TABLES = {
    "think_sessions_messagewords": "think_sessions_message",
    "think_sessions_entrywords": "think_sessions_contextentry",
}


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    index = _index(editor)
    for table, about in TABLES.items():
        for statement in index.install(table, about):
            editor.execute(statement)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    index = _index(editor)
    for table, about in TABLES.items():
        for statement in index.remove(table, about):
            editor.execute(statement)


def _index(editor: BaseDatabaseSchemaEditor) -> postgres.PostgresIndex | sqlite.SqliteIndex:
    return postgres.PostgresIndex() if editor.connection.vendor == "postgresql" else sqlite.SqliteIndex()


class Migration(migrations.Migration):
    dependencies = [
        ("think_sessions", "0002_conversations"),
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
                "verbose_name_plural": "message words",
            },
        ),
        migrations.RunPython(install, remove),
    ]
