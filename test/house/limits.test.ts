import { expect, it } from "vitest";
import { listSourceFiles, readText } from "../harness/house/tree.ts";

/**
 * Bounds that no user meets: of caches, waits and readers inside, and those that the documents describe in
 * other words.
 */
const INSIDE = new Set([
  // Caches and groups.
  ...["ROUTES_MAX", "CHANNELS_KNOWN_MAX", "SENT_MAX"],
  // Messages that are routed in the commit that feeds them.
  ...["IMMEDIATE_MAX_BYTES", "AT_ONCE_MAX"],
  // Namespaces that wait for a program.
  ...["READY_MAX", "ORDER_MAX_BYTES"],
  // Unread responses to an agent's requests.
  ...["CANCEL_MAX_MS", "UNREAD_MAX_CHARACTERS", "OPTIONS_MAX", "OPTION_MAX_CHARACTERS", "TOOLS_KNOWN_MAX"],
  ...["SEEN_MAX", "STEPS_KEPT_MAX", "LINES_MAX", "FENCE_MAX_CHARACTERS"],
  ...[
    "REMEMBERED_TOKENS_MAX",
    "REMEMBERED_MAX",
    "REMEMBERED_MAX_CHARACTERS",
    "PAGES_REMEMBERED_MAX",
    "SAVED_MAX",
    "RUNS_REMEMBERED_MAX",
    "VERSIONS_MAX",
    "RESULTS_MAX",
  ],
  ...[
    "RESULT_MAX_AGE_MS",
    "RESULT_MAX_CHARACTERS",
    "STATEMENTS_MAX",
    "GROUP_MAX_STATEMENTS",
    "GROUP_MAX_CHARACTERS",
    "WHOLE_MAX_CHARS",
    "HASHES_IN_FLIGHT_MAX",
  ],
  ...["REMEMBERED_PEOPLE_MAX", "USED_FLOWS_MAX", "USER_AGENT_MAX"],
  // Incomplete long events of a platform, and its signs.
  ...["EVENTS_MAX", "PIECES_MAX", "SIGNS_MAX", "PING_MAX_MS"],
  // Waits and attempts.
  ...[
    "TIMER_MAX_MS",
    "STOP_MAX_MS",
    "LIMIT_WAIT_MAX_MS",
    "VERSION_MAX_MS",
    "LINGER_MAX_MS",
    "LINGER_MAX_BYTES",
    "SHORT_REST_MAX_BYTES",
  ],
  ...[
    "PIPES_MAX_MS",
    "FINISH_MAX_MS",
    "BUSY_PAUSE_MAX_MS",
    "BUSY_WAIT_MAX_MS",
    "STARTS_MAX",
    "SWEEP_PASSES_MAX",
    "PLAN_ATTEMPTS_MAX",
  ],
  ...["STOP_WAIT_MAX_MS", "ANSWER_MAX_BYTES", "START_MAX_MS", "TURN_END_MAX_MS"],
  // The last claim of a runner, and the logs that it keeps in memory.
  ...["LAST_CLAIM_MAX_MS"],
  ...["LEAVE_MAX_MS", "STANDBYS_LISTED_MAX"],
  ...["CAUSES_MAX", "LINKS_MAX", "ANSWER_MAX_S"],
  // An engine's output, and the part of it in a log.
  ...[
    "LINE_MAX_BYTES",
    "LINE_MAX_DEPTH",
    "KEY_MAX_DEPTH",
    "STDERR_LINE_MAX_BYTES",
    "TEXT_MAX_CHARACTERS",
    "INPUT_MAX_CHARACTERS",
    "SESSIONS_MAX",
    "STEPS_COUNTED_MAX",
    "FILE_MAX_BYTES",
    "USAGE_FILE_MAX_BYTES",
  ],
  ...["OUTPUT_MAX_CHARACTERS", "OUTPUT_MAX_LINES", "WORDS_MAX_CHARACTERS"],
  // Parts of a prompt, which is bounded as a whole.
  ...["ANSWER_MAX_CHARACTERS", "DEPARTMENTS_SHOWN_MAX", "DESCRIPTION_MAX_CHARACTERS", "ENTRIES_MAX"],
  ...["ASKED_MAX_CHARACTERS", "WAITING_LISTED_MAX"],
  // Windows of a provider, and sums that stay whole numbers.
  ...["WINDOWS_MAX", "NAMES_MAX", "NAME_MAX_CHARACTERS", "UTILIZATION_MAX", "SUM_MAX"],
  // The instruction in a notice, and clock changes.
  ...["TITLE_MAX_CHARACTERS", "CHANGE_MAX_MS"],
  ...["SAID_MAX_CHARACTERS", "VALUE_MAX_CHARACTERS", "PROMPT_MAX_BYTES"],
  // The end of a gate's output in the message about its failure.
  "ERROR_TAIL_MAX_CHARACTERS",
  // The last line of a log, the text of a refusal, and the reports of one request.
  ...["LOG_BEYOND_MAX_BYTES", "DETAIL_MAX_CHARACTERS", "PER_REQUEST_MAX"],
  // Batch sizes of readers.
  ...["BLOCKED_COUNT_MAX", "ROOM_MAX_ROWS", "LIST_MAX_BYTES", "WAITING_MAX_BYTES", "DESCRIPTIONS_MAX_BYTES"],
]);

const DECLARED = /^(?:export )?const ([A-Z0-9_]*MAX[A-Z0-9_]*) = (.+);$/gm;

it("docs/reference/limits.md lists every limit that a user can meet, with its value", () => {
  const declared = new Map(
    listSourceFiles("src").flatMap((path) =>
      [...readText(path).matchAll(DECLARED)].map(([, name = "", value = ""]) => [name, value] as const)
    ),
  );
  const rows = new Map(
    [...readText("docs/reference/limits.md").matchAll(/^\| .+? \| (.+?) \| `([A-Z0-9_]+)` +\|$/gm)]
      .map(([, value = "", name = ""]) => [name, value.trim()] as const),
  );
  const met = [...declared.keys()].filter((name) => !INSIDE.has(name));
  expect([...rows.keys()].sort()).toEqual(met.sort());
  expect([...INSIDE].filter((name) => !declared.has(name)), "gone from the source").toEqual([]);
  expect(Object.fromEntries(rows)).toEqual(
    Object.fromEntries(met.map((name) => [name, shown(name, evaluateConstant(name, declared))])),
  );
});

it("docs/reference/contract.md states the size of a department tree and of a memory scope", () => {
  const contract = readText("docs/reference/contract.md");
  expect(contract).toContain("2,000 departments");
  expect(contract).toContain("1,000 entries in a scope");
});

/** Evaluates a constant: a number, a product or power of numbers, or another constant. */
function evaluateConstant(name: string, declared: Map<string, string>): number {
  const value = (declared.get(name) ?? "").replace(/\bMB\b/, "1000000").replaceAll("_", "");
  if (/^[\d *]+$/.test(value)) {
    return value.split(/ \* (?!\*)/).reduce((product, part) => product * power(part), 1);
  }
  const other = declared.get(name) ?? "";
  if (!declared.has(other)) throw new Error(`Cannot read the value of ${name}: ${other}`);
  return evaluateConstant(other, declared);
}

function power(text: string): number {
  const [base = 0, exponent = 1] = text.split("**").map(Number);
  return base ** exponent;
}

function shown(name: string, value: number): string {
  if (name.endsWith("_MS")) return value >= 86_400_000 ? `${value / 86_400_000} days` : `${value / 1_000} s`;
  if (!name.endsWith("_BYTES") && name !== "SCRYPT_MEMORY_MAX") return value.toLocaleString("en-US");
  for (const [unit, bytes] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (value >= bytes && value % bytes === 0) return `${value / bytes} ${unit}`;
  }
  return `${value.toLocaleString("en-US")} bytes`;
}
