from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from thinkproject.kernel import append_only

TABLES = ("think_tools_approvalevent", "think_tools_guardevent")


def install(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.install(editor.connection, TABLES)


def remove(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    append_only.remove(editor.connection, TABLES)


class Migration(migrations.Migration):
    dependencies = [("think_tools", "0017_rules_about_calls"), ("think_sessions", "0009_append_only")]

    operations = [migrations.RunPython(install, remove)]
