"""Dates of the admin in English: the form that our own columns have (`thinkproject/kernel/read_only_admin.py`)."""

from thinkproject.kernel.read_only_admin import MOMENT

DATETIME_FORMAT = MOMENT
DATE_FORMAT = "j M Y"
