"""Socket routes. The path is parsed raw by the consumer: a decoded one cannot tell `%2F` from a new segment."""

from channels.routing import URLRouter
from django.urls import re_path

from chat.consumers import AgentConsumer

# Every path reaches the consumer: one that names no agent is accepted and closed for good there, since clients retry a
# refused upgrade for ever.
websocket_urlpatterns = [re_path(r"", AgentConsumer.as_asgi())]
websocket_application = URLRouter(websocket_urlpatterns)
