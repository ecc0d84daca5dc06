"""The text of a skill."""


def text_of(name: str, description: str = "For a test.", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"
