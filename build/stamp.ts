import { join } from "node:path";
import type { Plugin } from "rolldown";
import { VERSION } from "../src/base/version.ts";
import { ROOT } from "./lock.ts";

/** The commit that a program was built from. */
export interface Stamp {
  version: string;
  /** Commit id, with `-dirty` appended when files differ from it; empty where there is no git. */
  commit: string;
  /** When that commit was made, ISO 8601 in UTC: the same for every build of it. */
  commitTime: string;
}

/** Reads the stamp from git, or from SVC_COMMIT and SVC_COMMIT_TIME where there is no repository. */
export async function readStamp(): Promise<Stamp> {
  const commit = Deno.env.get("SVC_COMMIT") ?? await git("rev-parse", "HEAD");
  const time = Deno.env.get("SVC_COMMIT_TIME") ?? await git("log", "-1", "--format=%cI");
  const dirty = Deno.env.get("SVC_COMMIT") === undefined && await git("status", "--porcelain") !== "";
  return {
    version: VERSION,
    commit: commit + (dirty ? "-dirty" : ""),
    commitTime: time === "" ? "" : new Date(time).toISOString(),
  };
}

async function git(...args: string[]): Promise<string> {
  try {
    const { success, stdout } = await new Deno.Command("git", { args, cwd: ROOT, stderr: "null" }).output();
    return success ? new TextDecoder().decode(stdout).trim() : "";
  } catch {
    return "";
  }
}

/** Writes the stamp into src/base/version.ts on its way into the bundle. A module and not JSON: that would cost start-up (facts, Deno 7). */
export function stampPlugin(stamp: Stamp): Plugin {
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
