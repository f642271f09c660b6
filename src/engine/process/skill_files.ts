// The skills of a worker in the private directory of a process.
import { dirname, join } from "node:path";
import { createPlain } from "../../base/files/plain_file.ts";
import { openDirectory, UnsafePathError } from "../../base/files/open_directory.ts";
import { removeTree } from "../../base/files/tree_removal.ts";
import { getInputDir, placeInRunDir } from "../run_dir.ts";
import { SpawnError } from "./process.ts";

interface SkillFile {
  path: string;
  isExecutable: boolean;
  bytes: Uint8Array;
}

/** A skill of the worker. */
export interface RunSkill {
  name: string;
  description: string;
  /** The SHA-256 of its files. */
  digest: string;
  /** Reads its files, and checks the digest. Throws SpawnError. */
  readFiles: () => Promise<readonly SkillFile[]>;
}

/** Returns the directory of the skills in the private directory of a run. */
export function getSkillsDir(runDir: string): string {
  return join(getInputDir(runDir), "skills");
}

/** Copies skills into the private directory of a process. Throws SpawnError and UnsafePathError. */
export async function placeSkills(
  { adapter, config }: { adapter?: { skillsFolder?: string }; config: { permissions: string } },
  skills: readonly RunSkill[],
  runDir: string,
): Promise<void> {
  if (skills.length === 0) return;
  const top = getSkillsDir(runDir);
  try {
    // An earlier process of the run may have changed them.
    await removeTree(placeInRunDir(top, runDir));
    for (const skill of skills) {
      const files = await skill.readFiles();
      const allowed = config.permissions === "full" ? files : restrictFiles(files, skill);
      placeFiles(allowed, join(top, adapter?.skillsFolder ?? "", skill.name), runDir);
    }
  } catch (error) {
    if (error instanceof SpawnError || error instanceof UnsafePathError) throw error;
    throw new SpawnError(`its skills cannot be copied: ${error instanceof Error ? error.message : error}`);
  }
}

function placeFiles(files: readonly SkillFile[], folder: string, runDir: string): void {
  for (const { path, isExecutable, bytes } of files) {
    const file = join(folder, path);
    makeFolders(dirname(file), runDir);
    createPlain(placeInRunDir(file, runDir), bytes, isExecutable ? 0o555 : 0o444);
  }
}

// The user of a box must be able to enter them, whatever the umask of the service is.
function makeFolders(path: string, runDir: string): void {
  if (path.length < getSkillsDir(runDir).length) return;
  makeFolders(dirname(path), runDir);
  using folder = openDirectory(placeInRunDir(path, runDir), 0o755);
  Deno.chmodSync(folder.address, 0o755);
}

const FRONT_MATTER = /^\uFEFF?---[ \t]*\r?\n[\s\S]*?\r?\n---[ \t]*(\r?\n|$)/;

// Claude Code takes permissions, hooks and commands from front matter, and settings and more skills from folders of its name. They would
// give it more than the permissions of the engine.
function restrictFiles(files: readonly SkillFile[], { name, description }: RunSkill): SkillFile[] {
  return files.filter(({ path }) => !/(^|\/)\.claude\//i.test(path)).map((file) =>
    /(^|\/)SKILL\.md$/i.test(file.path)
      ? {
        ...file,
        bytes: replaceFrontMatter(file.bytes, file.path === "SKILL.md" ? { name, description } : {}),
      }
      : file
  );
}

function replaceFrontMatter(bytes: Uint8Array, fields: Record<string, string>): Uint8Array {
  const body = new TextDecoder().decode(bytes).replace(FRONT_MATTER, "");
  const lines = Object.entries(fields).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  return new TextEncoder().encode(lines.length === 0 ? body : `---\n${lines.join("")}---\n${body}`);
}

/** Adds a list of skills in a private directory to a prompt. */
export function addSkillIndex(
  prompt: string,
  skills: readonly RunSkill[],
  { runDir, folder }: { runDir: string; folder: string | undefined },
): string {
  if (skills.length === 0) return prompt;
  const list = skills.map(({ name, description }) =>
    `- ${name}: ${description} (${join(getSkillsDir(runDir), folder ?? "", name, "SKILL.md")})`
  );
  return `${[HEAD, ...list].join("\n")}\n\n${prompt}`;
}

const HEAD = "# Skills\n\n" +
  "Each skill is a folder with instructions. When your task fits a description below, or names a skill, read its SKILL.md first and " +
  "follow it. Paths in it start at its folder.";
