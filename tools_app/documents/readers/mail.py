"""E-mails: who wrote what to whom and when, the text, and the names of the attachments."""

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Final

from tools_app.core.files.encodings import shown_text
from tools_app.core.files.reading import shown_size
from tools_app.core.web_pages import to_markdown
from tools_app.documents.readers.text import TextWriter, cleaned

_FIELDS: Final = ("From", "To", "Cc", "Subject", "Date")
MAX_LISTED: Final = 100


def read_mail(data: bytes) -> str:
    """The fields, the text and the list of attachments. A part in HTML is read where there is none of plain text."""
    message = BytesParser(policy=policy.default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    writer = TextWriter()
    fields = [(name, " ".join(str(message.get(name) or "").split())) for name in _FIELDS]
    writer.add("\n".join(f"{name}: {cleaned(value)}" for name, value in fields if value))
    body = message.get_body(preferencelist=("plain", "html"))
    if isinstance(body, EmailMessage):
        text = _text(body)
        writer.add(cleaned(to_markdown(text) if body.get_content_subtype() == "html" else text) or "(No text.)")
    attached = [_line(part) for part in message.walk() if _is_attached(part, body)]
    if attached:
        more = [f"- and {len(attached) - MAX_LISTED} more"] if len(attached) > MAX_LISTED else []
        writer.add("Attachments, which are not shown here:\n" + "\n".join([*attached[:MAX_LISTED], *more]))
    return writer.text()


def _text(part: EmailMessage) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError):  # a character set that does not exist
        payload = part.get_payload(decode=True)
        return shown_text(payload)[0] if isinstance(payload, bytes) else ""


def _is_attached(part: EmailMessage, body: object) -> bool:
    if part is body or (part.is_multipart() and part.get_content_type() != "message/rfc822"):
        return False
    return part.is_attachment() or part.get_filename() is not None or part.get_content_maintype() != "text"


def _line(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    name = cleaned(part.get_filename() or "without a name")
    facts = (
        f"{part.get_content_type()}, {shown_size(len(payload))}"
        if isinstance(payload, bytes)
        else part.get_content_type()
    )
    return f"- {name} ({facts})"
