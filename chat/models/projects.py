"""Table of projects: groups of conversations of one person, with what these have in common."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from thinkproject.kernel.ids import new_id


def new_project_id() -> str:
    """Id of a project."""
    return new_id("prj")


class ProjectColour(models.TextChoices):
    """The colours that a project may have. How each looks, light and dark, is for the page to say."""

    GREY = "grey", _("grey")
    RED = "red", _("red")
    ORANGE = "orange", _("orange")
    YELLOW = "yellow", _("yellow")
    GREEN = "green", _("green")
    TEAL = "teal", _("teal")
    BLUE = "blue", _("blue")
    PURPLE = "purple", _("purple")
    PINK = "pink", _("pink")


class Project(models.Model):
    """A group of one person's conversations. `instructions` are read by the models of all of them.

    `agent`: of conversations that are begun in it; empty: as elsewhere. Its files are a workspace whose scope it is.
    """

    id = models.CharField(_("id"), primary_key=True, max_length=64, default=new_project_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("owner"), on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(_("name"), max_length=60)
    colour = models.CharField(_("colour"), max_length=16, choices=ProjectColour.choices, default=ProjectColour.GREY)
    instructions = models.TextField(_("instructions"), blank=True, default="")
    agent = models.CharField(_("agent"), max_length=200, blank=True, default="")  # kebab-case route name of the class
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        constraints = [models.UniqueConstraint("owner", Lower("name"), name="think_project_name")]

    def __str__(self) -> str:
        return self.name
