"""The product's URLs and two more: to the provider, and back from it."""

from django.urls import URLPattern, URLResolver, include, path

from . import sign_in

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/provider/", sign_in.start, name="provider-start"),
    path("sign-in/provider/back/", sign_in.back, name="provider-back"),
    path("", include("thinkproject.urls")),
]
