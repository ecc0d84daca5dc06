"""What is known of the times at which a fiber lost its worker."""

from django.db import migrations

import thinkproject.kernel.fields


class Migration(migrations.Migration):
    dependencies = [
        ("think_fibers", "0008_schedules"),
    ]

    operations = [
        migrations.AddField(
            model_name="fiber",
            name="incident",
            field=thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="losses of its worker"),
        ),
    ]
