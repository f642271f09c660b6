import { join } from "node:path";
import type { Plugin } from "rolldown";
import { VERSION } from "../src/base/version.ts";
import { ROOT } from "./lock.ts";

/** The commit of a build. */
export interface Stamp {
  version: string;
  /** Commit id, with `-dirty` for uncommitted changes; empty without git. */
  commit: string;
  /** Commit time, ISO 8601 in UTC: the same for every build of the commit. */
  commitTime: string;
}

/** Reads the stamp from SVC_COMMIT and SVC_COMMIT_TIME, or from git. */
export async function readStamp(): Promise<Stamp> {
  const commit = Deno.env.get("SVC_COMMIT") ?? await runGit("rev-parse", "HEAD");
  const time = Deno.env.get("SVC_COMMIT_TIME") ?? await runGit("log", "-1", "--format=%cI");
  const dirty = Deno.env.get("SVC_COMMIT") === undefined && await runGit("status", "--porcelain") !== "";
  return {
    version: VERSION,
    commit: commit + (dirty ? "-dirty" : ""),
    commitTime: time === "" ? "" : new Date(time).toISOString(),
  };
}

async function runGit(...args: string[]): Promise<string> {
  try {
    const { success, stdout } = await new Deno.Command("git", { args, cwd: ROOT, stderr: "null" }).output();
    return success ? new TextDecoder().decode(stdout).trim() : "";
  } catch {
    return "";
  }
}

/** Inserts the stamp into src/base/version.ts in the bundle. A JSON file would slow the start (facts, Deno 7). */
export function createStampPlugin(stamp: Stamp): Plugin {
  return {
    name: "stamp",
    transform(code, id) {
      if (id !== join(ROOT, "src/base/version.ts")) return null;
      const stamped = code
        .replace('COMMIT: string = ""', `COMMIT: string = ${JSON.stringify(stamp.commit)}`)
        .replace('COMMIT_TIME: string = ""', `COMMIT_TIME: string = ${JSON.stringify(stamp.commitTime)}`);
      return { code: stamped };
    },
  };
}
