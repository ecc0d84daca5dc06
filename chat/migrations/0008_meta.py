from django.db import migrations, models
from django.db.migrations.state import StateApps


def count_configs(apps: StateApps, _schema_editor: object) -> None:
    """Version 0 says that nothing was ever configured."""
    apps.get_model("think_chat", "AgentInstance").objects.filter(config__isnull=False).update(config_version=1)


class Migration(migrations.Migration):
    dependencies = [("think_chat", "0007_cost_and_pins")]

    operations = [
        migrations.AddField(
            model_name="agentinstance",
            name="title_is_provisional",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="agentinstance",
            name="config_version",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.RunPython(count_configs, migrations.RunPython.noop),
    ]
