"""The tables of fibers, schedules and effects."""

import django.db.models.deletion
import django.db.models.functions.datetime
import fibers.core.schedules.states
import fibers.core.states
import fibers.models.fibers
import fibers.models.schedules
import thinkproject.kernel.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("think_fibers", "0001_initial"),
        ("think_fibers", "0002_live_lane"),
        ("think_fibers", "0003_owner_and_time"),
        ("think_fibers", "0004_share"),
        ("think_fibers", "0005_waits"),
        ("think_fibers", "0006_field_names"),
        ("think_fibers", "0007_agent_fibers"),
        ("think_fibers", "0008_schedules"),
        ("think_fibers", "0009_incident"),
        ("think_fibers", "0010_served_functions"),
        ("think_fibers", "0011_effects_of_querysets"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="EffectState",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name="name")),
                ("is_primed", models.BooleanField(default=False, verbose_name="knows what was there")),
                (
                    "due_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="next look"
                    ),
                ),
                ("looked_at", models.DateTimeField(null=True, verbose_name="last look")),
                ("looks", models.PositiveBigIntegerField(default=0, verbose_name="changes found")),
                ("error", models.TextField(blank=True, default="", verbose_name="error")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created"
                    ),
                ),
            ],
            options={
                "verbose_name": "effect of a queryset",
                "verbose_name_plural": "effects of querysets",
                "permissions": [("look_effect", "Can have an effect look at once")],
            },
        ),
        migrations.CreateModel(
            name="Fiber",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=fibers.models.fibers.new_fiber_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="function")),
                ("payload", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="input")),
                ("metadata", thinkproject.kernel.fields.JSONText(default=dict, verbose_name="metadata")),
                ("lane", models.CharField(blank=True, max_length=200, null=True, verbose_name="lane")),
                ("lane_position", models.PositiveBigIntegerField(default=0, verbose_name="place in the lane")),
                ("share", models.CharField(blank=True, max_length=100, null=True, verbose_name="share")),
                ("scope", models.CharField(blank=True, max_length=200, null=True, verbose_name="scope")),
                ("key", models.CharField(blank=True, max_length=200, null=True, unique=True, verbose_name="key")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("running", "running"),
                            ("parked", "parked"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("interrupted", "interrupted"),
                        ],
                        default=fibers.core.states.FiberStatus["PENDING"],
                        max_length=16,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=64)),
                ("result", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="result")),
                ("error", thinkproject.kernel.fields.JSONText(blank=True, null=True)),
                ("stash", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="stash")),
                ("fence", models.PositiveBigIntegerField(default=0, verbose_name="fence")),
                ("worker", models.CharField(blank=True, default="", max_length=100, verbose_name="worker")),
                ("lease_until", models.DateTimeField(blank=True, null=True, verbose_name="lease until")),
                ("attempt", models.PositiveIntegerField(default=0, verbose_name="attempts")),
                ("retries", models.PositiveIntegerField(default=0, verbose_name="retries")),
                ("max_retries", models.PositiveIntegerField(default=0, verbose_name="retries allowed")),
                ("recoveries", models.PositiveIntegerField(default=0, verbose_name="recoveries")),
                ("progress", models.PositiveBigIntegerField(default=0, verbose_name="progress")),
                (
                    "recovered_progress",
                    models.PositiveBigIntegerField(default=0, verbose_name="progress when last recovered"),
                ),
                (
                    "incident",
                    thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="losses of its worker"),
                ),
                ("stalled_at", models.DateTimeField(blank=True, null=True, verbose_name="without progress since")),
                ("waits", thinkproject.kernel.fields.JSONText(default=list)),
                ("parked_until", models.DateTimeField(blank=True, null=True, verbose_name="parked until")),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True, verbose_name="stop requested")),
                ("resume_requested_at", models.DateTimeField(blank=True, null=True, verbose_name="resume requested")),
                ("dispatched_at", models.DateTimeField(blank=True, null=True, verbose_name="workers last notified")),
                (
                    "available_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="not before"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created"
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True, verbose_name="started")),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="last active"
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "fiber",
                "verbose_name_plural": "fibers",
                "permissions": [("cancel_fiber", "Can cancel a fiber"), ("requeue_fiber", "Can run a fiber again")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["available_at", "id"],
                        name="think_fiber_pending",
                    ),
                    models.Index(
                        condition=models.Q(("status", "running")), fields=["lease_until"], name="think_fiber_leases"
                    ),
                    models.Index(condition=models.Q(("status", "running")), fields=["share"], name="think_fiber_share"),
                    models.Index(
                        condition=models.Q(("status", "parked")), fields=["parked_until"], name="think_fiber_parked"
                    ),
                    models.Index(fields=["finished_at"], name="think_fiber_finished"),
                    models.Index(fields=["owner", "created_at"], name="think_fiber_owner"),
                    models.Index(
                        condition=models.Q(("scope__isnull", False)),
                        fields=["scope", "created_at"],
                        name="think_fiber_scope",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at", None), ("scope__isnull", False)),
                        fields=["owner"],
                        name="think_fiber_scoped_live",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at", None)),
                        fields=["lane", "lane_position"],
                        name="think_fiber_live",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status", "running")), fields=("lane",), name="think_fiber_one_per_lane"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("lane__isnull", False)),
                        fields=("lane", "lane_position"),
                        name="think_fiber_lane_order",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FiberStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step_key", models.CharField(max_length=200, verbose_name="step")),
                ("value", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="value")),
                ("attempt", models.PositiveIntegerField(verbose_name="attempt")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created"
                    ),
                ),
                (
                    "fiber",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="think_fibers.fiber"
                    ),
                ),
            ],
            options={
                "verbose_name": "step",
                "verbose_name_plural": "steps",
                "constraints": [models.UniqueConstraint(fields=("fiber", "step_key"), name="think_fiber_step")],
            },
        ),
        migrations.CreateModel(
            name="RunnerCheckpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("runner", models.CharField(max_length=200, verbose_name="runner")),
                ("source", models.CharField(max_length=200, verbose_name="source")),
                ("cursor", models.CharField(max_length=500, verbose_name="cursor")),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="last changed",
                    ),
                ),
            ],
            options={
                "verbose_name": "checkpoint",
                "verbose_name_plural": "checkpoints",
                "constraints": [models.UniqueConstraint(fields=("runner", "source"), name="think_runner_source")],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=fibers.models.schedules.new_schedule_id,
                        editable=False,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("scope", models.CharField(max_length=64, verbose_name="scope")),
                ("title", models.CharField(blank=True, default="", max_length=200, verbose_name="title")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("delay", "once, after a delay"),
                            ("instant", "once, at an instant"),
                            ("cron", "at wall-clock times"),
                            ("interval", "every so often"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("spec", models.CharField(max_length=200, verbose_name="times")),
                ("zone", models.CharField(default="UTC", max_length=64, verbose_name="time zone")),
                ("function", models.CharField(max_length=200, verbose_name="function")),
                ("payload", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="input")),
                ("max_retries", models.PositiveIntegerField(default=0, verbose_name="retries allowed")),
                ("can_overlap", models.BooleanField(default=False, verbose_name="runs may overlap")),
                ("max_run_seconds", models.PositiveIntegerField(default=3600, verbose_name="longest run")),
                ("created_by", models.CharField(blank=True, default="", max_length=16, verbose_name="created by")),
                ("declaration", models.CharField(blank=True, max_length=200, null=True, verbose_name="declared as")),
                ("fingerprint", models.CharField(blank=True, editable=False, max_length=64, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("active", "active"), ("paused", "paused"), ("ended", "ended"), ("broken", "broken")],
                        default=fibers.core.schedules.states.ScheduleStatus["ACTIVE"],
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("error", models.TextField(blank=True, default="", verbose_name="error")),
                ("next_at", models.DateTimeField(blank=True, null=True, verbose_name="next run")),
                ("last_at", models.DateTimeField(blank=True, null=True, verbose_name="last run")),
                ("skipped", models.PositiveIntegerField(default=0, verbose_name="left out")),
                ("revision", models.PositiveBigIntegerField(default=0, editable=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created"
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="changed"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "permissions": [("run_schedule", "Can pause, resume and run a schedule")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "active")), fields=["next_at", "id"], name="think_schedule_due"
                    ),
                    models.Index(
                        condition=models.Q(("status", "ended")), fields=["updated_at"], name="think_schedule_ended"
                    ),
                    models.Index(fields=["scope", "created_at"], name="think_schedule_scope"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("declaration__isnull", False)),
                        fields=("scope", "declaration"),
                        name="think_schedule_declared",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("fingerprint__isnull", False)),
                        fields=("scope", "fingerprint"),
                        name="think_schedule_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("due_at", models.DateTimeField(verbose_name="due")),
                ("is_test", models.BooleanField(default=False, verbose_name="asked for")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="started"
                    ),
                ),
                (
                    "fiber",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedule_run",
                        to="think_fibers.fiber",
                        verbose_name="fiber",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="think_fibers.schedule",
                        verbose_name="schedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "run of a schedule",
                "verbose_name_plural": "runs of schedules",
                "indexes": [models.Index(fields=["schedule", "-created_at"], name="think_schedule_run_recent")],
            },
        ),
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
        migrations.CreateModel(
            name="EffectEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("object_pk", models.CharField(max_length=200, verbose_name="row")),
                ("fingerprint", thinkproject.kernel.fields.JSONText(blank=True, null=True, verbose_name="fingerprint")),
                ("revision", models.PositiveBigIntegerField(default=0, verbose_name="changes seen")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="entered"
                    ),
                ),
                (
                    "effect",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="think_fibers.effectstate",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of an effect",
                "verbose_name_plural": "entries of effects",
                "constraints": [models.UniqueConstraint(fields=("effect", "object_pk"), name="think_effect_entry")],
            },
        ),
    ]
