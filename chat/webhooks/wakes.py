"""Wakes that a Durable Streams server posts, in both of their forms: the protocol's, and that of its webhook draft."""

from dataclasses import dataclass, field

from pydantic import BaseModel, TypeAdapter, ValidationError

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.secrets import decrypt, encrypt


@dataclass(frozen=True, slots=True, kw_only=True)
class WokenStream:
    """A stream of a wake. `offset`: up to where its consumer is done; `tail`: its end then, where the form says it."""

    path: str
    offset: str
    tail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWake:
    """A wake. `epoch` is the number that fences its callbacks; `token` is the first of them that they show."""

    consumer: str
    epoch: int
    wake_id: str
    callback: str
    token: str = field(repr=False)
    streams: tuple[WokenStream, ...]
    is_draft: bool

    def to_json(self) -> JSONObject:
        """As a fiber keeps it. The token is encrypted."""
        streams = [{"path": each.path, "offset": each.offset, "tail": each.tail} for each in self.streams]
        facts = {name: getattr(self, name) for name in ("consumer", "epoch", "wake_id", "callback", "is_draft")}
        return {**facts, "token": encrypt(self.token), "streams": streams}


def stored_wake(value: JSONObject) -> StreamWake:
    """Read what `to_json` gave. Errors: `SecretUnreadable`."""
    streams = tuple(WokenStream(**each) for each in value["streams"])
    return StreamWake(**{**value, "token": decrypt(value["token"]), "streams": streams})


class _DraftStream(BaseModel):
    path: str
    offset: str


class _DraftWake(BaseModel):
    consumer_id: str
    epoch: int
    wake_id: str
    callback: str
    token: str
    streams: list[_DraftStream]

    def read(self) -> StreamWake:
        return StreamWake(
            consumer=self.consumer_id,
            epoch=self.epoch,
            wake_id=self.wake_id,
            callback=self.callback,
            token=self.token,
            streams=tuple(WokenStream(path=each.path, offset=each.offset) for each in self.streams),
            is_draft=True,
        )


class _Stream(BaseModel):
    path: str
    acked_offset: str
    tail_offset: str


class _Wake(BaseModel):
    subscription_id: str
    generation: int
    wake_id: str
    callback_url: str
    callback_token: str
    streams: list[_Stream]

    def read(self) -> StreamWake:
        streams = (
            WokenStream(path=each.path, offset=each.acked_offset, tail=each.tail_offset) for each in self.streams
        )
        return StreamWake(
            consumer=self.subscription_id,
            epoch=self.generation,
            wake_id=self.wake_id,
            callback=self.callback_url,
            token=self.callback_token,
            streams=tuple(streams),
            is_draft=False,
        )


_FORMS: TypeAdapter[_Wake | _DraftWake] = TypeAdapter(_Wake | _DraftWake)


def read_wake(body: bytes) -> StreamWake:
    """Read a wake of either form; keys that are not known are left out. Errors: `ValueError` for anything else."""
    try:
        return _FORMS.validate_json(body).read()
    except ValidationError as error:
        raise ValueError("the body is a wake of neither form") from error
