"""Addresses of the web UI. Include it at the root of the site, or below a prefix."""

from django.urls import path

from chat import views

app_name = "chat"
urlpatterns = [
    path("", views.home, name="home"),
    path("c/new", views.new, name="new"),
    path("c/<str:instance_id>", views.conversation, name="conversation"),
]
