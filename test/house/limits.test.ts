import { expect, it } from "vitest";
import { listSourceFiles, readText } from "../harness/house/tree.ts";

/** Constants that limits.md leaves out, because no user meets them or another page describes them. */
const LEFT_OUT: readonly string[] = `
  Caches and groups:
    ROUTES_MAX CHANNELS_KNOWN_MAX SENT_MAX REMEMBERED_TOKENS_MAX REMEMBERED_MAX
    SAVED_MAX RUNS_REMEMBERED_MAX VERSIONS_MAX RESULTS_MAX RESULT_MAX_AGE_MS
    RESULT_MAX_CHARACTERS STATEMENTS_MAX GROUP_MAX_STATEMENTS GROUP_MAX_CHARACTERS WHOLE_MAX_CHARS
    HASHES_IN_FLIGHT_MAX REMEMBERED_PEOPLE_MAX USED_FLOWS_MAX USER_AGENT_MAX UNUSABLE_MAX
    RUNS_CLOSED_MAX RESPONSES_KNOWN_MAX IDLE_SOCKETS_MAX RECENT_SKILLS_MAX
  Messages that the commit that feeds them also routes:
    IMMEDIATE_MAX_BYTES AT_ONCE_MAX
  Namespaces that wait for a program:
    READY_MAX ORDER_MAX_BYTES
  The start of a box, and scripts whose interpreter it needs:
    DASH_FD_MAX STDERR_MAX_BYTES SCRIPT_LINE_MAX_BYTES INTERPRETERS_MAX
  Unread responses to an agent's requests:
    CANCEL_MAX_MS WITHDRAW_MAX_MS CHANGES_KNOWN_MAX TOOL_MAX_CHARACTERS TOOL_MAX_BYTES SETTINGS_MAX_BYTES
    ARGUMENTS_DEPTH_MAX UNREAD_MAX_CHARACTERS OPTIONS_MAX OPTION_MAX_CHARACTERS CALLS_KNOWN_MAX TOOLS_KNOWN_MAX SEEN_MAX
    STEPS_KEPT_MAX LINES_MAX FENCE_MAX_CHARACTERS
  Incomplete long events of a platform, and its signs:
    EVENTS_MAX PIECES_MAX SIGNS_MAX PING_MAX_MS
  Waits and attempts:
    TIMER_MAX_MS STOP_MAX_MS LIMIT_WAIT_MAX_MS VERSION_MAX_MS LINGER_MAX_MS LINGER_MAX_BYTES
    SHORT_REST_MAX_BYTES PIPES_MAX_MS FINISH_MAX_MS BUSY_PAUSE_MAX_MS BUSY_WAIT_MAX_MS STARTS_MAX
    SWEEP_PASSES_MAX PLAN_ATTEMPTS_MAX STOP_WAIT_MAX_MS ANSWER_MAX_BYTES START_MAX_MS TURN_END_MAX_MS
    LAST_CLAIM_MAX_MS LEAVE_MAX_MS STANDBYS_LISTED_MAX CAUSES_MAX LINKS_MAX ANSWER_MAX_S INITIALIZE_MAX_MS
    SESSION_MAX_MS CUT_MAX_MS READY_MAX_MS STATE_MAX_CHARACTERS
  The output of git, where no limit of a diff applies:
    GIT_OUTPUT_MAX_BYTES GIT_STDERR_MAX_BYTES GIT_WORDS_MAX_CHARACTERS STAT_MAX_BYTES REPORT_MAX_BYTES SKIPPED_SHOWN_MAX
    SUBJECT_MAX_CHARACTERS SLUG_MAX_CHARACTERS LOCKS_DEPTH_MAX FILES_SHOWN_MAX
    ENTRIES_MAX_BYTES OBJECT_HEAD_MAX_BYTES FILE_LIST_MAX_BYTES
  An engine's output, and the part of it in a log:
    LINE_MAX_BYTES LINE_MAX_DEPTH KEY_MAX_DEPTH STDERR_LINE_MAX_BYTES TEXT_MAX_CHARACTERS
    INPUT_MAX_CHARACTERS SESSIONS_MAX STEPS_COUNTED_MAX FILE_MAX_BYTES CONTEXT_FILE_MAX_BYTES EARLY_MAX_BYTES USAGE_FILE_MAX_BYTES
    OUTPUT_MAX_CHARACTERS OUTPUT_MAX_LINES WORDS_MAX_CHARACTERS LOG_BEYOND_MAX_BYTES DETAIL_MAX_CHARACTERS
    PER_REQUEST_MAX ERROR_TAIL_MAX_CHARACTERS TAIL_MAX_CHARACTERS OFFSET_MAX_MINUTES PASSED_MAX_MS
  Parts of a prompt, which has a limit as a whole:
    ANSWER_MAX_CHARACTERS DEPARTMENTS_SHOWN_MAX DESCRIPTION_MAX_CHARACTERS ENTRIES_MAX ASKED_MAX_CHARACTERS
    WAITING_LISTED_MAX EARLIER_MAX_CHARACTERS
  Windows of a provider, and sums that stay whole numbers:
    WINDOWS_MAX NAMES_MAX NAME_MAX_CHARACTERS UTILIZATION_MAX SUM_MAX TOKENS_MAX COST_MAX_USD
  The instruction in a notice, and clock changes:
    TITLE_MAX_CHARACTERS CHANGE_MAX_MS SAID_MAX_CHARACTERS VALUE_MAX_CHARACTERS PROMPT_MAX_BYTES
  Rows and characters that a list, an overview or a refusal shows:
    INBOX_TITLE_MAX LATEST_TEXT_MAX INSTRUCTION_SHOWN_MAX OVERVIEW_EXECUTIONS_MAX OVERVIEW_WORKERS_MAX
    FAILING_SHOWN_MAX NAMES_SHOWN_MAX NAME_SHOWN_MAX ERRORS_MAX WORKERS_SHOWN_MAX RUNNING_LISTED_MAX SENDERS_LISTED_MAX
    UNPLACED_SHOWN_MAX LISTED_WORKERS_MAX EXPLAINED_WORKERS_MAX CANDIDATES_SHOWN_MAX DELTA_MAX_CHARACTERS
  Comparisons of a word with names:
    SHOWN_MAX WORD_MAX_CHARACTERS MENTIONS_MAX READ_MAX_CHARACTERS
  Requests between the service and a runner:
    CLAIM_WAIT_MAX_MS LOG_CHUNK_MAX_BYTES PARTS_LOST_MAX EVENTS_PER_REQUEST_MAX WORDS_MAX_BYTES DOWNLOAD_MAX_MS
    RUN_END_MAX_BYTES RESULT_TEXT_MAX_BYTES ERROR_MAX_BYTES STOPPED_MAX_MS INTERRUPT_MAX_MS
  Requests to a platform, and its messages:
    HISTORY_CHANNELS_MAX HISTORY_PAGES_MAX STORES_MAX SENDING_MAX FETCHES_MAX PLATFORM_FETCHES_MAX
    PROGRESS_EDITS_MAX KNOWN_MAX DEPTH_MAX POST_DEPTH_MAX FRAGMENTS_MAX BUFFERED_CHUNKS_MAX
    ANSWERED_KNOWN_MAX ATTRIBUTION_MAX_LINES ATTRIBUTION_MAX_CHARACTERS FROM_MAX_CHARACTERS MAIL_TRIES_MAX RECENT_MAX
    REFERENCES_MAX
  Batches of readers, and checks inside:
    BLOCKED_COUNT_MAX ROOM_MAX_ROWS LIST_MAX_BYTES WAITING_MAX_BYTES DESCRIPTIONS_MAX_BYTES SORTED_MAX_ROWS
    CODES_MAX CHECKED_MAX_BYTES MISSED_COUNT_MAX
`.match(/\b[A-Z0-9]+_[A-Z0-9_]+\b/g) ?? [];

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
  const met = [...declared.keys()].filter((name) => !LEFT_OUT.includes(name));
  expect([...rows.keys()].sort()).toEqual(met.sort());
  expect(LEFT_OUT.filter((name) => !declared.has(name)), "gone from the source").toEqual([]);
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
