"""Addresses of the web UI. Include it at the root of the site, or below a prefix."""

from django.urls import path

from chat.http import decision_page, installing, join_page, pages, preview_frame, shared_page

app_name = "chat"
urlpatterns = [
    path("", pages.home, name="home"),
    path("approvals", pages.approvals, name="approvals"),
    path("work", pages.work, name="work"),
    path("usage", pages.settings, {"section": "usage"}, name="usage"),
    path("settings", pages.settings, name="settings"),
    path("settings/<slug:section>", pages.settings, name="settings-section"),
    path("manifest.webmanifest", installing.manifest, name="manifest"),
    path("worker.js", installing.worker, name="worker"),
    path("offline", installing.offline, name="offline"),
    path("c/new", pages.new, name="new"),
    path("preview/<str:kind>", preview_frame.preview, name="preview"),
    path("decide/<str:token>", decision_page.decide, name="decide"),
    path("join/<str:secret>", join_page.join, name="join"),
    path("shared/<str:secret>", shared_page.shared, name="shared"),
    path("shared/<str:secret>/files/<str:file_id>", shared_page.shared_attachment, name="shared-file"),
    path("shared/<str:secret>/files/<str:file_id>/view", shared_page.shared_attachment_view, name="shared-file-view"),
    path("c/<str:instance_id>", pages.conversation, name="conversation"),
]
