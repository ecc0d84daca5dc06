"""Index the messages that are there, in batches, each its own transaction. Stopped, it goes on where it was."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from sessions_app.search.indexing import fill_messages


def fill(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    for _ in fill_messages(apps.get_model("think_sessions", "Message")._default_manager):
        pass


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("think_sessions", "0003_search"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
