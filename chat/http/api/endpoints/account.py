"""API operations on the caller's account: the browsers that are signed in."""

from django.http import HttpRequest
from ninja import Router, Status

from chat.access import browsers
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.account import BrowserOut, BrowsersOut, SignedOut

router = Router(tags=["account"])


@router.get("/account/browsers", response=BrowsersOut, operation_id="list_browsers")
def browser_list(request: HttpRequest) -> BrowsersOut:
    """Browsers that are signed in to your account, the last used first; at most 100."""
    caller = caller_of(request)
    items = [
        BrowserOut(
            id=row.pk,
            browser=row.browser,
            system=row.system,
            created_at=row.created_at,
            seen_at=row.seen_at,
            is_current=browsers.is_current(row, caller.credential.session_key),
        )
        for row in browsers.browsers_of(caller.user)
    ]
    return BrowsersOut(items=items, is_known=browsers.can_list())


@router.delete("/account/browsers", response=SignedOut, operation_id="sign_out_others")
def browsers_sign_out(request: HttpRequest) -> SignedOut:
    """Sign all browsers out but the one that asks. Their open pages are cut off at once; API tokens stay."""
    caller = caller_of(request)
    return SignedOut(count=browsers.sign_out_others(caller.user, caller.credential.session_key))


@router.delete("/account/browsers/{browser_id}", response={204: None}, operation_id="sign_out_browser")
def browser_sign_out(request: HttpRequest, browser_id: str) -> object:
    """Sign one browser out. Its open pages are cut off at once."""
    browsers.sign_out(caller_of(request).user, browser_id)
    return Status(204, None)
