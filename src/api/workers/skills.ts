import { invalid } from "../../domain/call/error.ts";
import {
  findSkillFile,
  getSkillSource,
  isSameSource,
  type Skill,
  type SkillCheck,
  type SkillChecked,
  type SkillSource,
} from "../../domain/workers/skill.ts";
import { resolveLinks, touchesData } from "../../base/paths.ts";
import { resolveSkillRef, SkillFault } from "../../files/git/skill_tree.ts";
import { findBySource } from "../../files/skills.ts";
import { findWorker, listAllSkills } from "../../store/workers/worker.ts";
import { type Answer, answer, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkMaySet } from "../work/task_commands.ts";

interface SkillChange {
  engine: string;
  runs_on: readonly string[];
  before: readonly SkillSource[];
  wanted: readonly SkillSource[];
  /** Prefix of field names in errors. */
  path?: string;
}

/** Whether two lists of skills come from the same places, in this order. */
export function hasSources(skills: readonly SkillSource[], sources: readonly SkillSource[]): boolean {
  return JSON.stringify(skills.map(getSkillSource)) === JSON.stringify(sources.map(getSkillSource));
}

/**
 * Checks who sets the skills of a worker and whether its runs can have them. Throws `forbidden` for a caller who cannot set them, as all
 * runs, and `invalid_request`.
 */
export function checkSkills(
  { engines }: Deps<"engines">,
  call: Call,
  { engine, runs_on, before, wanted, path = "" }: SkillChange,
): void {
  const field = `${path}skills`;
  if (!hasSources(before, wanted)) checkMaySet(call, "skills");
  if (wanted.length === 0) return;
  if (runs_on.length > 0) {
    throw invalid(
      field,
      "cannot be combined with runs_on: workers with skills run on the service's machine. Remove one of them.",
    );
  }
  const fault = engines.find(engine)?.skillFault ?? null;
  if (fault !== null) throw invalid(field, `cannot be given to its runs: ${fault}`);
}

/** Fetches the skills of a worker that are not kept. Throws `invalid_request` for one that cannot be used. */
export async function fetchSkills(
  deps: Deps<"db" | "paths" | "skills">,
  sources: readonly SkillSource[],
  path = "",
): Promise<Skill[]> {
  const field = `${path}skills`;
  const known = await listAllSkills(deps.db);
  const skills: Skill[] = [];
  for (const [index, source] of sources.entries()) {
    const place = `${field}.${index}`;
    const same = sources.findIndex((one) => isSameSource(one, source));
    if (same < index) throw invalid(place, `is the same as ${field}.${same}. Remove one of them.`);
    // A run fetches one again that a worker has, if it is not kept.
    const skill = findBySource(known, source) ?? await keepSkill(deps, source, `${place}.`);
    const other = skills.findIndex(({ name }) => name === skill.name);
    if (other >= 0) {
      throw invalid(place, `is called ${skill.name}, like ${field}.${other}. Remove one of them.`);
    }
    skills.push(skill);
  }
  return skills;
}

/**
 * Fetches the skill that a branch, a tag or a commit names, and compares it with the worker's. Changes nothing. Throws `not_found`,
 * `forbidden` for a caller who cannot set skills, and `invalid_request` for one that cannot be used.
 */
export async function checkSkill(
  deps: Deps<"db" | "paths" | "skills">,
  call: Call,
  id: string,
  { url, ref, path, name }: SkillCheck,
): Promise<Answer<SkillChecked>> {
  checkMaySet(call, "skills");
  const worker = requireFound(await findWorker(deps.db, id), "worker", id);
  try {
    const source = { url, ref: await resolveSkillRef(url, ref), path };
    const skill = findBySource(worker.skills, source) ?? await keepSkill(deps, source, "");
    const before = worker.skills.find((one) => one.name === (name ?? skill.name)) ?? null;
    if (name !== undefined && before === null) throw invalid("name", `the worker has no skill ${name}`);
    const { stat: { files_changed, insertions, deletions }, diff, isCut } = await deps.skills.compare(
      before,
      skill,
    );
    return answer({ skill, before, files_changed, insertions, deletions, diff, truncated: isCut });
  } catch (error) {
    throw error instanceof SkillFault ? invalid(error.field, error.message) : error;
  }
}

/** Fetches a skill, unless it is kept. Throws `invalid_request` `path` is the prefix of its fields. */
async function keepSkill(
  { paths, skills }: Deps<"paths" | "skills">,
  source: SkillSource,
  path: string,
): Promise<Skill> {
  const file = findSkillFile(source.url);
  if (file !== null && touchesData(resolveLinks(file), paths)) {
    throw invalid(`${path}url`, "is in the service's data directory");
  }
  try {
    return await skills.keep(source);
  } catch (error) {
    if (error instanceof SkillFault) throw invalid(`${path}${error.field}`, error.message);
    throw error;
  }
}
