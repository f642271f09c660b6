// Prepares the skills of a worker for a run.
import type { Skill } from "../domain/workers/skill.ts";
import { SpawnError } from "../engine/process/process.ts";
import type { RunSkill } from "../engine/process/skill_files.ts";
import { SkillFault } from "../files/git/skill_tree.ts";
import type { SkillStore } from "../files/skills.ts";

/** Returns the skills of a run. Their files are read and checked when a process starts. */
export function buildRunSkills(store: SkillStore, skills: readonly Skill[]): RunSkill[] {
  return skills.map((skill) => ({
    name: skill.name,
    description: skill.description,
    digest: skill.digest,
    async readFiles() {
      try {
        return await store.read(skill);
      } catch (error) {
        if (!(error instanceof SkillFault)) throw error;
        const { name, url, ref } = skill;
        throw new SpawnError(
          `its skill ${name} (${ref} of ${url}) cannot be used, because the kept files are missing or changed, and its ${error.field} ${error.message}`,
          "setup",
        );
      }
    },
  }));
}
