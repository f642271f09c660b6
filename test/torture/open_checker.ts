// Compares the notes of open agents with the stored rows of their runs (reliability CHD-15).
import { readRows } from "../harness/model/workload.ts";

/**
 * An agent's note: the start of a turn with its context; its end; a session that another agent had; a
 * missing token; or what a spare process knows before its first turn.
 */
export interface Note {
  word: "turn" | "end" | "overlap" | "blind" | "spare";
  /** The mark of its process. */
  process: string;
  stays: boolean;
  /** Unix ms. */
  at: number;
  worker: string;
  key: string;
  words: string;
  /** The variables of a run in a spare process. */
  own: string[];
  /** The prompts of earlier turns. */
  past: string[];
  /** The execution in its token. */
  token: string;
  /** The run's variables in a bash. */
  bash: { execution: string; task: string; message: string; token: string };
  context: { words: string; key: string };
  /** The service's status for its token, and for the token of the previous turn; 0 without a response. */
  status: number;
  statusBefore: number | null;
}

interface Run extends Record<string, string | number> {
  id: string;
  worker_id: string;
  session_key: string;
  task_id: string;
  message_id: string;
  instruction: string;
  status: string;
  failure: string;
  engine: string;
  result: string;
}

// The first characters of each token.
const TOKEN = /eyJ[\w-]{10,}\.[\w-]{20,}\.[\w-]{20,}/;
const OK = 200;
const REFUSED = 401;
const UNANSWERED = 0;

export async function readNotes(ledger: string): Promise<Note[]> {
  const text = await Deno.readTextFile(ledger).catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

/** Checks the turns of a server that has stopped. Returns the violations. */
export async function checkTurns(dataDir: string, ledger: string): Promise<string[]> {
  const rows = await readRows<Run>(
    dataDir,
    `select id, worker_id, session_key, task_id, message_id, instruction, status, failure, engine, substr(result, 1, 10000) as result
    from execution`,
  );
  const notes = await readNotes(ledger);
  const turns = notes.filter(({ word }) => word === "turn");
  const runs = new Map(rows.map((run) => [run.id, run]));
  const owners = mapOwners(rows);
  // Cancelling a run revokes its token.
  const cancelled = new Set(rows.filter(({ failure }) => failure === "cancelled").map(readLastLine));
  const done = Map.groupBy(turns, ({ token }) => token);
  return [
    ...(turns.some((turn, i) => turns.findIndex(({ process }) => process === turn.process) < i)
      ? []
      : ["CHD-15: no process stayed open for a second turn"]),
    ...notes.filter(({ word, own, words }) => word === "spare" && (own.length > 0 || words !== ""))
      .map(({ own, process }) => `CHD-15: the spare process ${process} has a token or ${own.join(" ")}`),
    ...(turns.some(({ status }) => status === OK) ? [] : ["CHD-15: no turn could ask with its token"]),
    ...notes.filter(({ word, words }) => word === "blind" && !cancelled.has(words))
      .map(({ words }) => `CHD-15: the turn ${JSON.stringify(words)} had no token`),
    ...turns.flatMap((turn) =>
      findWrong(turn, runs.get(turn.token), owners).map((words) =>
        `CHD-15: the turn ${JSON.stringify(turn.words)} of the process ${turn.process} ${words}`
      )
    ),
    ...notes.filter(({ word }) => word === "overlap")
      .map(({ words }) => `CHD-15: two processes had the session ${words}`),
    ...[...done].filter(([, { length }]) => length > 1)
      .map(([id, { length }]) => `DSP-1: the execution ${id} was started ${length} times`),
    ...rows.filter((run) => run.engine === "open" && run.status === "completed" && !done.has(run.id))
      .map(({ id }) => `DSP-2: the execution ${id} is completed, and no agent has done it`),
    ...rows.filter(({ result }) => TOKEN.test(result)).map(({ id }) => `I9: the result of ${id} has a token`),
  ];
}

/** Maps each text to the conversations that contain it. */
function mapOwners(runs: readonly Run[]): Map<string, Set<string>> {
  const owners = new Map<string, Set<string>>();
  for (const run of runs) {
    const { worker_id, session_key } = run;
    const words = readLastLine(run);
    owners.set(words, (owners.get(words) ?? new Set()).add(`${worker_id} ${session_key}`));
  }
  return owners;
}

// No turn has the token, the context or the memory of another conversation [CHD-15].
function findWrong(turn: Note, run: Run | undefined, owners: Map<string, Set<string>>): string[] {
  if (run === undefined) return [`has a token of no run: ${turn.token}`];
  const { bash, context } = turn;
  const conversation = `${turn.worker} ${turn.key}`;
  const strange = turn.past.filter((words) => owners.get(words)?.has(conversation) !== true);
  const rules: [isWrong: boolean, words: string][] = [
    [conversation !== `${run.worker_id} ${run.session_key}`, "has the token of another conversation"],
    [turn.words !== readLastLine(run), `has the token of ${JSON.stringify(run.instruction)}`],
    [bash.token !== run.id || bash.execution !== run.id, "has a bash with another run's token"],
    [bash.task !== run.task_id || bash.message !== run.message_id, "has a bash of another run"],
    [context.words !== turn.words || context.key !== run.session_key, "has the context of another run"],
    [strange.length > 0, `remembers what was said to others: ${strange.slice(0, 3).join(", ")}`],
    // The token of a run that was cancelled meanwhile is invalid.
    [turn.status === REFUSED && run.status !== "failed", "had a token that has expired"],
    [![null, REFUSED, UNANSWERED].includes(turn.statusBefore), "could use the token before"],
  ];
  return rules.filter(([isWrong]) => isWrong).map(([, words]) => words);
}

/** Returns the last line of the agent's prompt. */
function readLastLine({ instruction }: Pick<Run, "instruction">): string {
  return instruction.trim().split("\n").at(-1) ?? "";
}
