"""The models that answered a turn, where several did."""

from django.db import migrations

import thinkproject.kernel.fields


class Migration(migrations.Migration):
    dependencies = [
        ("think_chat", "0015_agent_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="model_report",
            field=thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="models"),
        ),
    ]
