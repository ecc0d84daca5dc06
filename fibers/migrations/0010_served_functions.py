"""The functions that executors have lately had."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("think_fibers", "0009_incident"),
    ]

    operations = [
        migrations.CreateModel(
            name="ServedFunction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, verbose_name="function")),
                (
                    "kind",
                    models.CharField(
                        choices=[("worker", "Worker"), ("program", "Program")], max_length=16, verbose_name="kind"
                    ),
                ),
                ("queue", models.CharField(blank=True, default="", max_length=200, verbose_name="queue")),
                (
                    "seen_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="last seen"
                    ),
                ),
            ],
            options={
                "verbose_name": "executor",
                "verbose_name_plural": "executors",
                "indexes": [models.Index(fields=["queue", "seen_at"], name="think_served_queue")],
                "constraints": [models.UniqueConstraint(fields=("name", "kind"), name="think_served_function")],
            },
        ),
    ]
