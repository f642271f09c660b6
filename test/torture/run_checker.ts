// Compares the programs' own notes with the stored rows of their runs (reliability DSP-1, DSP-2).
import { join } from "node:path";
import { buildDataPaths, getLogPath } from "../../src/base/paths.ts";
import { Database } from "../../src/store/db/database.ts";
import { readLedger } from "../harness/fakes/agents.ts";
import { walk } from "./checker.ts";

const LOG_MAX_BYTES = 1_000_000;
// A program that marks prints its execution and its attempt.
const MARK = /\bmark ([0-9a-f-]{36}) (\d+)/g;

interface Run extends Record<string, string | number> {
  id: string;
  attempt: number;
  status: string;
  engine: string;
  result: string;
  /** The reply in its conversation. */
  said: string;
}

/** Checks the runs of a server that has stopped, with runners or without. Returns the violations. */
export async function checkRuns(dataDir: string, agentLedger: string): Promise<string[]> {
  await using db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const runs = await db.read<Run>(
    `select id, attempt, status, engine, substr(result, 1, 500) as result,
      coalesce((select substr(content, 1, 500) from outbound_message where execution_id = execution.id), '') as said
    from execution`,
  );
  return [
    ...await findBrokenLeases(db),
    ...runs.flatMap(findWrongMarks),
    ...await findWrongLogs(dataDir, runs),
    ...await findWrongStarts(agentLedger, runs),
  ];
}

/** Finds files of ended runs in the work_root of a stopped runner. */
export async function checkWorkRoot(root: string): Promise<string[]> {
  const left = await Promise.all(
    ["open", "logs", "files", "runs"].map((folder) =>
      Array.fromAsync(walk(join(root, folder))).catch(() => [])
    ),
  );
  return left.filter((paths) => paths.length > 0)
    .map((paths) => `I8: a runner has left ${paths.slice(0, 5).join(", ")}`);
}

const LEASES: [words: string, sql: string][] = [
  ["I6: a lease has not ended", "select execution_id as id from remote_run where lease_until is not null"],
  [
    "DSP-2: an outcome is stored that its runner did not report",
    `select execution_id as id from remote_run join execution on execution.id = execution_id
    where status = 'completed' and reported = 0`,
  ],
];

async function findBrokenLeases(db: Database): Promise<string[]> {
  const faults: string[] = [];
  for (const [words, sql] of LEASES) {
    const rows = await db.read<{ id: string }>(sql);
    if (rows.length > 0) faults.push(`${words}: ${rows.map(({ id }) => id).slice(0, 5).join(", ")}`);
  }
  return faults;
}

// The output of attempt N is the result and the reply of attempt N, never of another one [DSP-2].
function findWrongMarks({ id, attempt, result, said }: Run): string[] {
  return [["result", result], ["reply", said]].flatMap(([what, text = ""]) =>
    [...text.matchAll(MARK)].filter(([, by, no]) => by !== id || Number(no) !== attempt)
      .map(([mark]) => `DSP-2: the ${what} of ${id}, attempt ${attempt}, is of another run: ${mark}`)
  );
}

async function findWrongLogs(dataDir: string, runs: readonly Run[]): Promise<string[]> {
  const faults: string[] = [];
  for (const { id, status, result } of runs) {
    const path = getLogPath(buildDataPaths(dataDir), id);
    const { size } = await Deno.stat(path).catch(() => ({ size: 0 }));
    const text = size === 0 || size > LOG_MAX_BYTES ? "" : await Deno.readTextFile(path);
    const marks = [...text.matchAll(MARK)];
    // A completed run has its whole log; a lost run may have a part.
    const least = status === "completed" && result.startsWith("mark ") ? 1 : 0;
    if (marks.length < least || marks.length > 1) {
      faults.push(`DSP-2: the log of ${id} has ${marks.length} marks`);
    }
    if (marks.some(([, by]) => by !== id)) faults.push(`DSP-2: the log of ${id} has the mark of another run`);
  }
  return faults;
}

// No execution starts twice, not even one after the other [DSP-1]. A completed one was started and ended by a program.
async function findWrongStarts(agentLedger: string, runs: readonly Run[]): Promise<string[]> {
  const started = new Map<string, number>();
  const ended = new Map<string, number>();
  for (const { word, execution } of await readLedger(agentLedger)) {
    const counts = word === "start" ? started : word === "end" ? ended : null;
    counts?.set(execution, (counts.get(execution) ?? 0) + 1);
  }
  return [
    ...[...started].filter(([id, count]) => count > 1 && id !== "none")
      .map(([id, count]) => `DSP-1: the execution ${id} was started ${count} times`),
    ...runs.filter(({ id, status, engine }) =>
      status === "completed" && engine === "fake" && (started.get(id) !== 1 || ended.get(id) !== 1)
    ).map(({ id }) =>
      `DSP-2: the execution ${id} is completed, and its program started ${started.get(id) ?? 0} and ended ${
        ended.get(id) ?? 0
      } times`
    ),
  ];
}
