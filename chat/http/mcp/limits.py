"""The limit of requests by a user's programs, over all processes. What they do is limited where it is done."""

import logging
import time

from redis.exceptions import RedisError

from chat.errors import QuotaExceeded
from chat.http.mcp.conf import mcp_server_settings
from thinkproject.kernel.cache import shared_cache
from thinkproject.kernel.phrases import Phrase

logger = logging.getLogger(__name__)


def count_request(user_id: object) -> None:
    """Count one request of this user. Errors: `QuotaExceeded` beyond the limit of the minute.

    Without its cache it counts nothing, and the log has a warning: turns are still limited by the database.
    """
    limit = mcp_server_settings.requests_per_minute
    if not limit:
        return
    minute, passed = divmod(int(time.time()), 60)
    name = f"think.mcp.requests.{user_id}.{minute}"
    try:
        shared_cache().add(name, 0, 120)
        count = shared_cache().incr(name)
    except (RedisError, OSError, ValueError):
        logger.warning("not counted", extra={"action": "mcp_request_not_counted"})
        return
    if count > limit:
        raise QuotaExceeded(
            Phrase("Your programs have sent {limit} requests within a minute. Try again in a moment.", limit=limit),
            retry_after_seconds=60 - passed,
        )
