from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("think_fibers", "0006_field_names"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="fiber",
            name="scope",
            field=models.CharField(blank=True, max_length=200, null=True, verbose_name="scope"),
        ),
        migrations.CreateModel(
            name="RunnerCheckpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("runner", models.CharField(max_length=200, verbose_name="runner")),
                ("source", models.CharField(max_length=200, verbose_name="source")),
                ("cursor", models.CharField(max_length=500, verbose_name="cursor")),
                ("updated_at", models.DateTimeField(db_default=Now(), editable=False, verbose_name="last changed")),
            ],
            options={
                "verbose_name": "checkpoint",
                "verbose_name_plural": "checkpoints",
                "constraints": [models.UniqueConstraint(fields=("runner", "source"), name="think_runner_source")],
            },
        ),
        migrations.AddIndex(
            model_name="fiber",
            index=models.Index(
                condition=models.Q(("scope__isnull", False)), fields=["scope", "created_at"], name="think_fiber_scope"
            ),
        ),
        migrations.AddIndex(
            model_name="fiber",
            index=models.Index(
                condition=models.Q(("finished_at", None), ("scope__isnull", False)),
                fields=["owner"],
                name="think_fiber_scoped_live",
            ),
        ),
    ]
