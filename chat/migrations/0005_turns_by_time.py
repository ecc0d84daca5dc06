from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("think_chat", "0004_provider_keys"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(fields=["accepted_at"], name="think_turn_accepted"),
        ),
    ]
