"""People who may do some things in the admin."""

from django.contrib.auth.models import Permission, User
from django.test import Client


def staff(*codenames: str) -> tuple[User, Client]:
    user = User.objects.create_user("staff", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return user, client
