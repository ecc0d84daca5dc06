"""How much one user may keep. Called where rows are made, so that every entry meets the same limit.

Counted in rows, not in a cache: right across processes and after a restart.
"""

from chat.conf_access import AccessSettings
from chat.errors import QuotaExceeded
from chat.models import AgentInstance

_conf = AccessSettings()


def check_instance_quota(owner_id: int | None) -> None:
    """Errors: `QuotaExceeded` when the user keeps `THINK_INSTANCES_PER_USER` conversations, sub-agents among them."""
    limit = _conf.instances_per_user
    if not limit or owner_id is None:
        return
    # Bounded: looks whether there is a row at the limit instead of counting all.
    if AgentInstance.objects.filter(owner_id=owner_id)[limit - 1 : limit].exists():
        raise QuotaExceeded(f"You can keep {limit} conversations; delete some first.", limit=limit)
