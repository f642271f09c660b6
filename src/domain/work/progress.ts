/** Times of progress messages (contract 10.6). */
const PROGRESS_AFTER_MS = 5_000;
const PROGRESS_EVERY_MS = 3_000;
const PROGRESS_EVERY_IN_GROUP_MS = 10_000;
const PROGRESS_EDITS_MAX = 15;
/** Platforms hide a typing indicator after some seconds, so the service repeats it. */
export const TYPING_EVERY_MS = 4_000;

const LINES_MAX = 3;
const STEP_SHOWN_CHARACTERS = 120;

interface ProgressMessage {
  text: string;
  edits: number;
  edited_at: number;
}

interface ConversationWork {
  /** Unix ms. */
  since: number;
  isDirect: boolean;
  text: string;
}

/** Returns in how many ms the progress message is sent or edited: 0 for now, Infinity without news (contract 10.6). */
export function computeProgressDueMs(
  { since, isDirect, text }: ConversationWork,
  shown: ProgressMessage | null,
  now: number,
): number {
  if (text === "") return Infinity;
  if (shown === null) return Math.max(0, since + PROGRESS_AFTER_MS - now);
  if (shown.edits >= PROGRESS_EDITS_MAX || shown.text === text) return Infinity;
  const every = isDirect ? PROGRESS_EVERY_MS : PROGRESS_EVERY_IN_GROUP_MS;
  return Math.max(0, shown.edited_at + every - now);
}

/** Formats the progress message in at most 3 lines: the workers and their latest steps (contract 10.6). */
export function formatProgress(runs: readonly { worker: string; steps: readonly string[] }[]): string {
  const [first] = runs;
  if (first === undefined) return "";
  const names = [...new Set(runs.map(({ worker }) => worker))].slice(0, LINES_MAX).join(", ");
  const lines = [`${names} ${runs.length === 1 ? "works" : "work"} on it …`];
  const steps = runs.flatMap((run) => run.steps).slice(-(LINES_MAX - 1));
  return [...lines, ...steps].join("\n");
}

const VERBS: [RegExp, string][] = [
  [/^(bash|shell|exec|terminal|run|command)/i, "Runs"],
  [/^(read|view|cat|open_?file)/i, "Reads"],
  [/^(write|edit|multiedit|patch|apply|create|str_replace|replace)/i, "Writes"],
  [/^(grep|glob|search|find|list|ls)/i, "Searches"],
  [/^web_?search/i, "Searches the web for"],
  [/^(web_?fetch|fetch)/i, "Opens"],
];

/** Formats one use of a tool in plain words, on one line. */
export function formatStep(tool: string, input: string): string {
  const verb = VERBS.find(([pattern]) => pattern.test(tool))?.[1] ?? `Uses ${tool}:`;
  const line = `${verb} ${input}`.replace(/[\s`]+/g, " ").trim().replace(/:$/, "");
  return line.length <= STEP_SHOWN_CHARACTERS ? line : `${line.slice(0, STEP_SHOWN_CHARACTERS - 1)}…`;
}
