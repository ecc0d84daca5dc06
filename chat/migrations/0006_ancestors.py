import thinkproject.kernel.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("think_chat", "0005_last_body"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentinstance",
            name="ancestors",
            field=thinkproject.kernel.fields.JSONText(default=list),
        ),
    ]
