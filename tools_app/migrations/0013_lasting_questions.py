from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("think_tools", "0012_field_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolcallrecord",
            name="lasting",
            field=models.BooleanField(default=False, verbose_name="stays open"),
        ),
    ]
