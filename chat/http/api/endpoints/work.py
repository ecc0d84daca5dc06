"""API operation on what is at work for a person, over all conversations. Each kind has its own operations."""

from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from chat.conversations import work
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.schedules import run_out
from chat.http.api.schemas.work import Cursor, SectionName, WorkItemOut, WorkPageOut

router = Router(tags=["work"])
Limit = Annotated[int, Query(ge=1, le=200)]


@router.get("/work", response=WorkPageOut, operation_id="list_work")
def work_list(request: HttpRequest, section: SectionName = "now", cursor: Cursor = "", limit: Limit = 50) -> object:
    """Work that runs, is planned or has ended for you in any conversation of yours, a section at a time.

    `now`: turns and background work that have not ended, newest first. `schedules`: the next one first, what is paused
    or broken last. `ended`: background work of the last seven days, newest first.
    """
    page = work.work_page(caller_of(request).user.pk, work.WorkSection(section), cursor=cursor, limit=limit)
    return WorkPageOut(items=[_shown(item) for item in page.items], next_cursor=page.next_cursor)


def _shown(item: work.WorkItem) -> WorkItemOut:
    last_run = None if item.last_run is None else run_out(item.last_run)
    return WorkItemOut(**{**asdict(item), "last_run": last_run})
