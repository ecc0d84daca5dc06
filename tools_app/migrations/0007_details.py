"""What is known of a call besides its output."""

import thinkproject.kernel.fields
from django.db import migrations


class Migration(migrations.Migration):
    """A column that later versions fill."""

    dependencies = [("think_tools", "0006_workspaces")]

    operations = [
        migrations.AddField(
            model_name="toolcallrecord",
            name="details",
            field=thinkproject.kernel.fields.JSONText(blank=True, null=True),
        ),
    ]
