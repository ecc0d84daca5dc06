from datetime import UTC, datetime

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("think_chat", "0008_meta"),
    ]

    operations = [
        migrations.CreateModel(
            name="MessageCount",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("minute_started_at", models.DateTimeField(default=NEVER)),
                ("minute_count", models.PositiveBigIntegerField(default=0)),
                ("message_count", models.PositiveBigIntegerField(default=0)),
                ("byte_count", models.PositiveBigIntegerField(default=0)),
                ("counted_at", models.DateTimeField(default=NEVER)),
            ],
        ),
    ]
