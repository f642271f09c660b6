// The skills of a worker: folders of a git repository with a SKILL.md, which its runs get (contract 28).
import { z } from "zod";
import { ignoreFields, line, text } from "../call/field.ts";
import { branch, findUrlFault } from "./repo.ts";

/** Skills of one worker. */
const SKILLS_MAX = 20;
/** All files of one skill. */
export const SKILL_MAX_BYTES = 50 * 1024 * 1024;
export const SKILL_FILES_MAX = 2_000;
const SKILL_NAME_MAX_CHARACTERS = 64;
export const SKILL_DESCRIPTION_MAX_CHARACTERS = 1_024;
const SKILL_URL_MAX_BYTES = 2_000;
/** A path of a skill in its repository, and of a file in a skill. */
export const SKILL_PATH_MAX_BYTES = 500;

const SHA = /^[0-9a-f]{40}$/;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
// A segment that stays below its folder, and cannot become a part of a repository.
const SEGMENT = /^(?!\.{1,2}$)(?!\.git$)[^/\\\p{Cc}]+$/iu;

/** Whether a text is the full SHA of a commit. */
export function isCommit(text: string): boolean {
  return SHA.test(text);
}

/** Returns the path of a `file:` address, or null for another address. */
export function findSkillFile(address: string): string | null {
  const url = /^file:/i.test(address) ? URL.parse(address) : null;
  try {
    return url === null ? null : decodeURIComponent(url.pathname);
  } catch {
    return null;
  }
}

function findAddressFault(address: string): string | null {
  if (!/^file:/i.test(address)) return findUrlFault(address);
  return /^file:\/\/\/[^?#]+$/.test(address) && findSkillFile(address) !== null
    ? null
    : "must have an absolute path after file://, such as file:///srv/skills";
}

/** Whether a path is relative and stays in its folder. */
export function isSafePath(path: string): boolean {
  return path.split("/").every((name) => SEGMENT.test(name));
}

/** Returns why a name is not that of a skill, or null. */
export function findSkillNameFault(name: string): string | null {
  if (name.length <= SKILL_NAME_MAX_CHARACTERS && NAME.test(name)) return null;
  return `must be at most ${SKILL_NAME_MAX_CHARACTERS} lower-case letters, digits and single hyphens`;
}

const skillUrl = line(SKILL_URL_MAX_BYTES).superRefine((value, context) => {
  const fault = findAddressFault(value);
  if (fault !== null) context.addIssue({ code: "custom", message: fault });
}).meta({
  description: "address of a git repository: https, ssh, or file:///<path> on the service's machine",
});

const skillPath = text(SKILL_PATH_MAX_BYTES).refine((value) => value === "" || isSafePath(value), {
  error: "must be the path of a folder in the repository, without a slash at its ends, .. and .git",
}).meta({ description: "the folder of its SKILL.md; empty: the root" });

const source = {
  url: skillUrl,
  ref: z.string().regex(SHA, {
    error:
      "must be the full SHA of a commit: 40 digits of 0-9 and a-f. svc ctl skill add finds the one of a " +
      "branch or tag",
  }).meta({ description: "full SHA of the commit", examples: ["9fceb02d0ae598e95dc970b74767f19372d61af8"] }),
  path: skillPath.default(""),
};

const LIMIT = `must be at most ${SKILLS_MAX} skills`;

/** Where the service finds a skill. */
export interface SkillSource {
  url: string;
  ref: string;
  path: string;
}

// A client may send back what GET returned.
export const skillSourcesSchema = z.array(
  z.strictObject({ ...source, ...ignoreFields("name", "description", "digest") })
    .partial({ name: true, description: true, digest: true })
    .transform(({ url, ref, path }): SkillSource => ({ url, ref, path })),
).max(SKILLS_MAX, { error: LIMIT }).meta({
  description: "folders of git repositories with a SKILL.md that its runs get, each at a commit",
});

export const skillSchema = z.strictObject({
  ...source,
  path: skillPath,
  name: z.string().meta({ description: "from its SKILL.md" }),
  description: z.string().meta({ description: "from its SKILL.md" }),
  digest: z.string().meta({ description: "SHA-256 of its files, which each run checks" }),
});
export type Skill = z.output<typeof skillSchema>;

export const skillCheckSchema = z.strictObject({
  url: skillUrl,
  ref: branch.default("HEAD").meta({ description: "a branch, a tag, HEAD or the full SHA of a commit" }),
  path: skillPath.default(""),
  name: z.string().optional().meta({
    description: "the skill of the worker to compare with; default: the one that has its name",
  }),
}).meta({
  id: "SkillCheck",
  examples: [{ url: "https://forge.example.org/team/skills.git", path: "weigh" }],
});
export type SkillCheck = z.output<typeof skillCheckSchema>;

export const skillCheckedSchema = z.strictObject({
  skill: skillSchema.meta({ description: "the skill at the commit that ref names" }),
  before: skillSchema.nullable().meta({ description: "the skill of the worker that it would replace" }),
  files_changed: z.int(),
  insertions: z.int(),
  deletions: z.int(),
  diff: z.string().meta({ description: "the changes of its files, the first 2 MiB" }),
  truncated: z.boolean().meta({ description: "whether the diff is longer" }),
}).meta({ id: "SkillChecked" });
export type SkillChecked = z.output<typeof skillCheckedSchema>;

/** Returns where a skill comes from. */
export function getSkillSource({ url, ref, path }: SkillSource): SkillSource {
  return { url, ref, path };
}

/** Whether two skills come from the same folder and commit. */
export function isSameSource(one: SkillSource, other: SkillSource): boolean {
  return one.url === other.url && one.ref === other.ref && one.path === other.path;
}
