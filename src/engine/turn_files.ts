// The files of a process that stays open which change with each run.
import { join } from "node:path";
import { readPlain, replacePlain } from "../base/files/plain_file.ts";
import { quoteShellWord } from "../base/shell.ts";
import type { EngineRun } from "./engine.ts";
import { type BoxUser, giveFile } from "./process/box.ts";
import { getInputDir, getTempDir, placeInRunDir } from "./run_dir.ts";

// Variables that change with each run. A process that stays open has the values of its first run, so each bash that it starts reads the
// current ones from turn.sh.
export const RUN_VARIABLES = [
  "SVC_TOKEN",
  "SVC_SESSION_KEY",
  "SVC_EXECUTION_ID",
  "SVC_TASK_ID",
  "SVC_MESSAGE_ID",
  "TRACEPARENT",
];
// Far beyond what the service writes. An agent may have replaced the file.
const CONTEXT_FILE_MAX_BYTES = 256 * 1024 * 1024;

/** Writes token, variables and context of a run for a process. */
export function writeRunFiles(dir: string, { env, ownEnv, runDir }: EngineRun): void {
  const lines = RUN_VARIABLES.flatMap((name) =>
    env[name] === undefined ? [] : [`export ${name}=${quoteShellWord(env[name])}\n`]
  );
  const own = ownEnv.BASH_ENV ?? env.BASH_ENV ?? "";
  if (own !== "") {
    // Bash expands variables in BASH_ENV, and ignores a missing file.
    const file = `"${own.replaceAll('"', '\\"')}"`;
    lines.push(`[ ! -r ${file} ] || . ${file}\n`);
  }
  const context = readPlain(placeInRunDir(env.SVC_CONTEXT_FILE ?? "", runDir), CONTEXT_FILE_MAX_BYTES) ?? "";
  const replace = (name: string, text: string) =>
    replacePlain(placeInRunDir(join(getInputDir(dir), name), dir), text);
  replace("turn.sh", lines.join(""));
  replace("token", env.SVC_TOKEN ?? "");
  replace("context.json", context);
}

/** Gives these files to the user of a box. */
export function giveRunFiles(dir: string, user: BoxUser | null): void {
  if (user === null) return;
  const input = ["turn.sh", "token", "context.json"].map((name) => join(getInputDir(dir), name));
  for (const path of [getTempDir(dir), ...input]) giveFile(placeInRunDir(path, dir), user);
}
