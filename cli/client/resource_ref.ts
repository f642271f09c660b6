import type { Api } from "../../src/http/app.ts";
import type { Client } from "./client.ts";
import { notFound } from "../../src/domain/call/error.ts";
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
  | "budget";

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
export async function resolveRef(client: Client, kind: RefKind, ref: string): Promise<string> {
  // The request itself refuses these.
  if (ID.test(ref) || ref === "" || ref === "." || ref === "..") return ref;
  if (ref.trim() === "") throw notFound(kind, ref);
  const found = await findMatches(client, kind, ref);
  const [first] = found;
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

// The list of each kind, and the fields that describe a match.
const LISTS: Record<RefKind, [endpoint: ListEndpoint, ...fields: string[]]> = {
  worker: ["GET /api/workers", "name", "description"],
  session: ["GET /api/local/sessions", "name"],
  task: ["GET /api/tasks", "status", "instruction"],
  execution: ["GET /api/executions", "worker_name", "instruction"],
  question: ["GET /api/questions", "status", "text"],
  budget: ["GET /api/budgets", "name", "target"],
  message: ["GET /api/messages/inbound", "content"],
  outbound: ["GET /api/messages/outbound", "content"],
};

async function findMatches(client: Client, kind: RefKind, ref: string): Promise<Match[]> {
  const [endpoint, ...fields] = LISTS[kind];
  const { value } = await client.call(endpoint, { query: { ref, page_size: MATCHES_SHOWN_MAX + 1 } });
  return (value as Record<string, unknown>[]).map((row) => ({
    id: String(row.id),
    about: shorten(fields.map((name) => row[name]).join("  ")),
  }));
}

function shorten(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 60);
}
