from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from sessions_app.apps import APPEND_ONLY
from thinkproject.kernel import append_only


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.install(editor.connection, APPEND_ONLY)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.remove(editor.connection, APPEND_ONLY)


class Migration(migrations.Migration):
    dependencies = [("think_sessions", "0008_message_author")]

    operations = [migrations.RunPython(install, remove)]
