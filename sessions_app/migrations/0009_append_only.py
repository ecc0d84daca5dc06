from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from thinkproject.kernel import append_only

TABLES = ("think_sessions_contextchange",)


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.install(editor.connection, TABLES)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.remove(editor.connection, TABLES)


class Migration(migrations.Migration):
    dependencies = [("think_sessions", "0008_message_author")]

    operations = [migrations.RunPython(install, remove)]
