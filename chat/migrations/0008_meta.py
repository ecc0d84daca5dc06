from django.db import migrations, models


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
    ]
