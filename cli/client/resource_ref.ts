import type { Api } from "../../src/http/app.ts";
import type { Client } from "./client.ts";
import { notFound, ServiceError } from "../../src/domain/call/error.ts";
import { normalizeName } from "../../src/domain/call/name_key.ts";
import { ACTIVE_TASK_STATUSES } from "../../src/domain/call/vocabulary.ts";
import { usageError } from "../terminal/exit.ts";
import { escapeControls } from "../terminal/visible.ts";

/** Kinds of objects with short references. Workers and sessions have a name, and every object has the ending of its ID (contract 8.11). */
export type RefKind =
  | "worker"
  | "session"
  | "task"
  | "execution"
  | "message"
  | "outbound"
  | "question"
  | "budget"
  | "schedule"
  | "token"
  | "device"
  | "user"
  | "webhook"
  | "runner"
  | "department";

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MATCHES_SHOWN_MAX = 10;

/** A match of a reference, with a description for people. */
interface Match {
  id: string;
  about: string;
}

/**
 * Returns the ID for a reference. An ID is returned without a request. Throws `not_found`, and a usage error that
 * lists several matches.
 */
export async function resolveRef(client: Client, kind: RefKind, given: string): Promise<string> {
  // Tables print an ID as … and its ending.
  const ref = given.replace(/^(?:…|\.\.\.)(?=[0-9a-f]+$)/i, "");
  // The server finds these by name. Only an ending of an ID has to be found in the list.
  if (SERVER_FINDS_NAMES.includes(kind) && !/^[0-9a-f]{6,12}$/i.test(ref)) return ref;
  // The request itself refuses these.
  if (ID.test(ref) || ref === "" || ref === "." || ref === "..") return ref;
  if (ref.trim() === "") throw notFound(kind, ref);
  // A caller without the right to list users may still name one.
  const found = await findMatches(client, kind, ref).catch((error) => {
    if (SERVER_FINDS_NAMES.includes(kind) && error instanceof ServiceError && error.code === "forbidden") {
      return [];
    }
    throw error;
  });
  const [first] = found;
  if (first === undefined && SERVER_FINDS_NAMES.includes(kind)) return ref;
  if (first === undefined) throw notFound(kind, ref);
  if (found.length === 1) return first.id;
  const lines = found.slice(0, MATCHES_SHOWN_MAX).map(({ id, about }) => `  ${id}  ${escapeControls(about)}`);
  const more = found.length > MATCHES_SHOWN_MAX ? ["  and more"] : [];
  throw usageError(
    [`${JSON.stringify(ref)} matches several ${kind}s. Use one of these IDs:`, ...lines, ...more].join("\n"),
  );
}

type ListEndpoint = {
  [E in keyof Api & string]: Api[E]["query"] extends { ref?: unknown } ? E : never;
}[keyof Api & string];

const SERVER_FINDS_NAMES: readonly RefKind[] = ["user", "webhook", "runner", "department"];

// The list of each kind, and the fields that describe a match.
const LISTS: Record<Exclude<RefKind, "department">, [endpoint: ListEndpoint, ...fields: string[]]> = {
  worker: ["GET /api/workers", "name", "description"],
  session: ["GET /api/local/sessions", "name"],
  task: ["GET /api/tasks", "status", "instruction"],
  execution: ["GET /api/executions", "worker_name", "instruction"],
  question: ["GET /api/questions", "status", "text"],
  budget: ["GET /api/budgets", "name", "target"],
  message: ["GET /api/messages/inbound", "content"],
  outbound: ["GET /api/messages/outbound", "content"],
  schedule: ["GET /api/schedules", "status", "name", "instruction"],
  token: ["GET /api/tokens", "name", "user_name"],
  device: ["GET /api/push/devices", "name", "user_name"],
  user: ["GET /api/users", "name"],
  webhook: ["GET /api/webhooks", "name", "url"],
  runner: ["GET /api/runners", "name"],
};

interface NamedRow {
  id: string;
  name: string;
  children?: NamedRow[];
}

// Departments come as one tree.
async function findDepartments(client: Client, ref: string): Promise<Match[]> {
  const { value } = await client.call("GET /api/departments", {});
  const flatten = (rows: NamedRow[]): NamedRow[] =>
    rows.flatMap((row) => [row, ...flatten(row.children ?? [])]);
  const ending = ref.toLowerCase();
  return flatten(value)
    .filter(({ id, name }) =>
      normalizeName(name) === normalizeName(ref) || /^[0-9a-f]{6,}$/.test(ending) && id.endsWith(ending)
    )
    .map(({ id, name }) => ({ id, about: name }));
}

async function findMatches(client: Client, kind: RefKind, ref: string): Promise<Match[]> {
  if (kind === "department") return await findDepartments(client, ref);
  const [endpoint, ...fields] = LISTS[kind];
  const { value } = await client.call(endpoint, { query: { ref, page_size: MATCHES_SHOWN_MAX + 1 } });
  const rows = value as Record<string, unknown>[];
  // A schedule may have the name of one that has ended.
  const active = rows.filter(({ status }) => ACTIVE_TASK_STATUSES.some((one) => one === status));
  return (kind === "schedule" && active.length > 0 ? active : rows).map((row) => ({
    id: String(row.id),
    about: shorten(fields.map((name) => row[name]).join("  ")),
  }));
}

function shorten(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 60);
}
