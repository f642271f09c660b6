import { join } from "node:path";
import type { SourceDir } from "./files.ts";

/** The file in which Hermes stores its schedules, and OpenClaw stored them before it had a database. */
export const JOBS_FILE = "cron/jobs.json";

/** Reads the jobs, or returns null without a file. Throws a usage error for a wrong one. */
export async function readJobsFile(
  dir: SourceDir,
  folder: string,
  parse: (text: string) => unknown,
): Promise<unknown[] | null> {
  const types = { jobs: "list", "jobs.*": "object", "jobs.*.enabled": "boolean" } as const;
  const file = await dir.readSettings(join(folder, JOBS_FILE), parse, types);
  return file === null ? null : (file.jobs ?? []) as unknown[];
}
