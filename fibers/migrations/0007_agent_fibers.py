from django.conf import settings
from django.db import migrations, models


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
