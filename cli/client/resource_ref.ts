import type { Client } from "./client.ts";
import { notFound } from "../../src/domain/error.ts";
import { usageError } from "../terminal/exit.ts";
import { escapeControls } from "../terminal/visible.ts";

/** What can be named by less than its id: workers, departments and sessions by their names, all by the ending of their id (contract 8.11). */
export type RefKind =
  | "worker"
  | "department"
  | "session"
  | "task"
  | "execution"
  | "message"
  | "outbound"
  | "question"
  | "budget";

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const CANDIDATES_MAX = 10;

/** Something that a text names, and words by which a person knows it. */
interface Candidate {
  id: string;
  about: string;
}

/**
 * The id of what `ref` names. An id is not asked about: whether it exists is found out by its use. Throws `not_found`, and a usage
 * error with the candidates when several things are named so.
 */
export async function resolveRef(client: Client, kind: RefKind, ref: string): Promise<string> {
  // Empty ones, and those that no path can hold, are refused where they are used.
  if (ID.test(ref) || ref === "" || ref === "." || ref === "..") return ref;
  if (ref.trim() === "") throw notFound(kind, ref);
  const found = await CANDIDATES[kind](client, ref);
  const [first] = found;
  if (first === undefined) throw notFound(kind, ref);
  if (found.length === 1) return first.id;
  const lines = found.slice(0, CANDIDATES_MAX).map(({ id, about }) => `  ${id}  ${escapeControls(about)}`);
  const more = found.length > CANDIDATES_MAX ? ["  and more"] : [];
  throw usageError(
    [`${JSON.stringify(ref)} is more than one ${kind}; take the id of one:`, ...lines, ...more].join("\n"),
  );
}

const PAGE = { page_size: CANDIDATES_MAX + 1 };

const CANDIDATES: Record<RefKind, (client: Client, ref: string) => Promise<Candidate[]>> = {
  worker: async (client, ref) => {
    const { value } = await client.call("GET /api/workers", { query: { ref, ...PAGE } });
    return value.map(({ id, name, description }) => ({ id, about: shorten(`${name}  ${description}`) }));
  },
  session: async (client, ref) => {
    const { value } = await client.call("GET /api/local/sessions", { query: { ref, ...PAGE } });
    return value.map(({ id, name }) => ({ id, about: shorten(name) }));
  },
  task: async (client, ref) => {
    const { value } = await client.call("GET /api/tasks", { query: { ref, ...PAGE } });
    return value.map(({ id, status, instruction }) => ({ id, about: shorten(`${status}  ${instruction}`) }));
  },
  execution: async (client, ref) => {
    const { value } = await client.call("GET /api/executions", { query: { ref, ...PAGE } });
    return value.map(({ id, worker_name, instruction }) => ({
      id,
      about: shorten(`${worker_name}  ${instruction}`),
    }));
  },
  question: async (client, ref) => {
    const { value } = await client.call("GET /api/questions", { query: { ref, ...PAGE } });
    return value.map(({ id, status, text }) => ({ id, about: shorten(`${status}  ${text}`) }));
  },
  budget: async (client, ref) => {
    const { value } = await client.call("GET /api/budgets", { query: { ref, ...PAGE } });
    return value.map(({ id, name, target }) => ({ id, about: shorten(`${name}  ${target}`) }));
  },
  message: async (client, ref) => {
    const { value } = await client.call("GET /api/messages/inbound", { query: { ref, ...PAGE } });
    return value.map(({ id, content }) => ({ id, about: shorten(content) }));
  },
  outbound: async (client, ref) => {
    const { value } = await client.call("GET /api/messages/outbound", { query: { ref, ...PAGE } });
    return value.map(({ id, content }) => ({ id, about: shorten(content) }));
  },
  // The server takes their names itself, and lists all of them at once.
  department: async (client, ref) => {
    const all = flatten((await client.call("GET /api/departments")).value);
    const ending = ref.toLowerCase();
    const ended = ref.length < 6 ? [] : all.filter(({ id }) => id.endsWith(ending));
    return ended.length > 0 ? ended : [{ id: ref, about: "" }];
  },
};

interface Tree {
  id: string;
  name: string;
  children: Tree[];
}

function flatten(trees: readonly Tree[]): Candidate[] {
  return trees.flatMap(({ id, name, children }) => [{ id, about: name }, ...flatten(children)]);
}

function shorten(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 60);
}
