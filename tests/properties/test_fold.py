"""Laws of the fold: pieces, merging, snapshots."""

from hypothesis import given
from hypothesis import strategies as st

from chat.core.wire.accumulator import Accumulator, fold
from chat.core.wire.chunks import Chunk, is_shown, merge, validate
from tests.properties.chunk_strategies import deltas, streams
from thinkproject.kernel.jsonvalue import dump, load


@given(streams, st.data())
def test_folding_in_any_two_pieces_gives_the_same_message(stream: list[Chunk], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    assert fold(stream[cut:], fold(stream[:cut])) == fold(stream)


@given(streams, st.data())
def test_a_message_through_json_can_be_folded_on(stream: list[Chunk], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    stored = load(dump(fold(stream[:cut])))
    assert fold(stream[cut:], stored) == fold(stream)


@given(streams)
def test_looking_at_the_message_changes_nothing(stream: list[Chunk]) -> None:
    watched = Accumulator()
    seen = []
    for chunk in stream:
        watched.apply(chunk)
        seen.append((watched.message, dump(watched.message)))
    assert watched.message == fold(stream)
    assert all(dump(message) == before for message, before in seen)


@given(streams)
def test_folding_changes_no_chunk(stream: list[Chunk]) -> None:
    before = dump(stream)
    fold(stream)
    assert dump(stream) == before


@given(streams, deltas, deltas, streams)
def test_merged_deltas_fold_as_the_two(before: list[Chunk], first: Chunk, second: Chunk, after: list[Chunk]) -> None:
    merged = merge(first, second)
    if merged is not None:
        assert fold([*before, merged, *after]) == fold([*before, first, second, *after])
        assert is_shown(merged) == (is_shown(first) or is_shown(second))


@given(streams)
def test_coalescing_a_stream_folds_to_the_same(stream: list[Chunk]) -> None:
    coalesced: list[Chunk] = []
    for chunk in stream:
        merged = merge(coalesced[-1], chunk) if coalesced else None
        coalesced[-1:] = [merged] if merged is not None else [*coalesced[-1:], chunk]
    assert fold(coalesced) == fold(stream)


@given(streams)
def test_what_is_not_accepted_changes_nothing(stream: list[Chunk]) -> None:
    forwarded = []
    accumulator = Accumulator()
    for chunk in stream:
        if accumulator.accepts(chunk):
            forwarded.append(chunk)
        accumulator.apply(chunk)
    assert fold(forwarded) == fold(stream)


@given(streams)
def test_settled_calls_have_one_result_and_an_input(stream: list[Chunk]) -> None:
    for part in fold(stream)["parts"]:
        state = part.get("state", "")
        if "toolCallId" in part and state.startswith("output"):
            assert "input" in part
            assert ("output" in part, "errorText" in part) == (state == "output-available", state == "output-error")


@given(streams)
def test_known_chunks_are_valid(stream: list[Chunk]) -> None:
    for chunk in stream:
        if chunk["type"] != "novelty":
            assert validate(chunk) is chunk
