"""API operations on the caller's account: the browsers that are signed in, the export of everything, the end of it."""

from dataclasses import asdict
from datetime import timedelta

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.timezone import localdate
from ninja import Router, Status

from chat.access import browsers
from chat.access.signing_again import has_password, require_again
from chat.conversations import account_removal, data_exports
from chat.files.serving import PiecesResponse, ServedFile, with_safe_headers
from chat.http.api.authentication import browser_caller_of, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.account import (
    AccountDeleteIn,
    AccountOut,
    BrowserOut,
    BrowsersOut,
    DataExportOut,
    DataExportsOut,
    SignedOut,
)
from chat.models import DataExport
from chat.operations.data_exports import KEPT_DAYS, forget_exports

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


@router.get("/account", response=AccountOut, operation_id="get_account")
def account_get(request: HttpRequest) -> AccountOut:
    """Your account, and how much would go with it."""
    caller = caller_of(request)
    is_browser = caller.credential.kind == "session"
    return AccountOut(
        name=caller.user.get_username(),
        has_password=has_password(caller.user),
        is_fresh=is_browser and browsers.is_fresh(request.session),
        **asdict(account_removal.belongings_of(caller.user)),
    )


@router.post(
    "/account/delete", response={204: None}, operation_id="delete_account", openapi_extra=declares(403, 409, 429)
)
def account_delete(request: HttpRequest, data: AccountDeleteIn) -> object:
    """Delete your account with everything in it. Only with a browser, and with your password.

    You are signed out everywhere at once; the rest is removed in the background. It cannot be undone.
    """
    user = browser_caller_of(request).user
    require_again(request, user, data.password)
    account_removal.begin_removal(user)
    return Status(204, None)


@router.get("/account/exports", response=DataExportsOut, operation_id="list_data_exports")
def data_export_list(request: HttpRequest) -> DataExportsOut:
    """Your export of everything, if there is one."""
    row = data_exports.export_of(caller_of(request).user.pk)
    return DataExportsOut(items=[] if row is None else [_export(row)])


@router.post("/account/exports", response={202: DataExportOut}, operation_id="start_data_export")
def data_export_start(request: HttpRequest) -> object:
    """Have everything of yours written into one zip, in the background. One that is being written goes on."""
    return Status(202, _export(data_exports.start_export(caller_of(request).user.pk)))


@router.get(
    "/account/exports/{export_id}/file",
    operation_id="download_data_export",
    openapi_extra={
        "responses": {
            200: {
                "description": "The zip",
                "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
            }
        }
    },
)
def data_export_file(request: HttpRequest, export_id: str) -> HttpResponseBase:
    """Download an export that is ready."""
    row = data_exports.open_export(caller_of(request).user.pk, export_id)
    file = data_exports.open_export_file(row)
    name = f"everything-{localdate(row.created_at).isoformat()}.zip"
    served = ServedFile(name=name, media_type="application/zip", size=row.byte_size, tag=row.pk)
    response = PiecesResponse(file, 0, row.byte_size)
    response["Content-Length"] = str(row.byte_size)
    return with_safe_headers(response, served, is_download=True)


@router.delete("/account/exports/{export_id}", response={204: None}, operation_id="remove_data_export")
def data_export_remove(request: HttpRequest, export_id: str) -> object:
    """Remove an export, or stop it."""
    user = caller_of(request).user
    data_exports.open_export(user.pk, export_id)
    forget_exports(user.pk)
    return Status(204, None)


def _export(row: DataExport) -> DataExportOut:
    return DataExportOut(
        id=row.pk,
        status=data_exports.export_status(row).value,
        done=row.done_count,
        total=row.total_count,
        byte_size=row.byte_size,
        created_at=row.created_at,
        expires_at=row.created_at + timedelta(days=KEPT_DAYS),
    )
