"""The fiber that runs a call in another process, and who may run those of all users."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("think_fibers", "0010_served_functions"),
        ("think_tools", "0019_directories_keep"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="toolcallrecord",
            options={
                "permissions": [("run_calls_of_all", "Can run the calls of all users in an executor")],
                "verbose_name": "tool call",
                "verbose_name_plural": "tool calls",
            },
        ),
        migrations.AddField(
            model_name="toolcallrecord",
            name="executor",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="think_fibers.fiber",
                verbose_name="job",
            ),
        ),
    ]
