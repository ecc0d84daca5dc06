from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("think_fibers", "0001_tables"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="fiber",
            index=models.Index(
                condition=models.Q(("finished_at", None)),
                fields=["owner", "created_at"],
                name="think_fiber_under_way",
            ),
        ),
    ]
