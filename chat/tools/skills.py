"""Sources of skills, for `get_skills`, and what a source of your own is made of."""

from tools_app.skills.front_matter import SkillHead
from tools_app.skills.skill import Skill, SkillFault, SkillFile, SkillFiles, SkillSource
from tools_app.skills.sources import SkillDirectory, SkillsInCode, WorkspaceSkills

__all__ = [
    "Skill",
    "SkillDirectory",
    "SkillFault",
    "SkillFile",
    "SkillFiles",
    "SkillHead",
    "SkillSource",
    "SkillsInCode",
    "WorkspaceSkills",
]
