"""API schema of to-do lists."""

from ninja import Schema

from tools_app.core.todos import Todo


class TodosOut(Schema):
    """The to-do list of a conversation, in order; empty for one without a list."""

    todos: list[Todo]
