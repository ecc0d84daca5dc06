"""Sentences for people as they are before they are translated. Plain Python: any core may say something.

`thinkproject.kernel.languages.translate` gives a phrase in the language of the person who asks, at the edge where it
leaves the product. Until then it is English.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, init=False)
class Phrase:
    """A sentence in English with named places, and what belongs there: `Phrase("At most {limit} files.", limit=8)`.

    The sentence is what catalogues translate, so it is a literal. Places are written as for `str.format`.
    """

    text: str
    values: dict[str, object] = field(hash=False)

    def __init__(self, text: str, /, **values: object) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        """The sentence in English."""
        return self.filled(self.text)

    def with_values(self, **values: object) -> "Phrase":
        """The same sentence with other values."""
        return type(self)(self.text, **values)

    def filled(self, text: str) -> str:
        """A translation of the sentence with the values in their places."""
        return text.format(**self.values) if self.values else text
