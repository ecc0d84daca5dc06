"""URLs of the project: composition only."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from chat.http.api.problems import unknown_operation
from thinkproject.api import api

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    re_path(r"^api/", unknown_operation),
    path("", include("chat.urls_api")),
    path("", include("chat.urls")),
]
