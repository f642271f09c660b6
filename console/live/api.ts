import type { components, paths } from "#schema";
import createClient from "openapi-fetch";
import { clockOffsetMs } from "./clock.ts";
import { authed } from "./session.ts";

/** The REST API, typed from its OpenAPI document, as whoever is signed in. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: sent });

/** A key by which the service knows a request again. */
export function newKey(): string {
  return `console-${Date.now()}-${Math.random().toString(36).slice(2)}`;
}

/** What the API calls by these names. */
export type Schemas = components["schemas"];
export type Worker = Schemas["Worker"];
export type Task = Schemas["Task"];
export type Execution = Schemas["Execution"];
export type ChatSession = Schemas["LocalSession"];
export type Conversation = Schemas["Conversation"];
export type ChatMessage = Schemas["LocalMessage"];
export type Question = Schemas["Question"];
export type JournalEvent = Schemas["Event"];

// A restart behind a proxy is a 502 or 504 of the proxy.
const PASSING: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** A request that the service refused, or that did not reach it. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  /** What was wrong with which field. */
  readonly errors: readonly { path: string; message: string }[];

  constructor(status: number, code: string, detail: string, errors: Refusal["errors"] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }

  /** Whether the same is worth asking again soon: there was no answer, too much was asked, or a proxy found no service behind it. */
  get passing(): boolean {
    return PASSING.has(this.status);
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer of a call. Throws Refusal. */
export async function ask<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await answered(call)).data as T;
}

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** How many there are in all, as the service says it, such as `10000+`. */
  total: string;
  /** The cursor of the next page. */
  next: string | null;
}

/** The answer of a list call. Throws Refusal. */
export async function askPage<T>(call: Promise<Answer<T[]>>): Promise<Page<T>> {
  const { data = [], response } = await answered(call);
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  const next = link === undefined ? null : new URL(link, location.origin).searchParams.get("cursor");
  return { items: data, total: response.headers.get("x-total-count") ?? String(data.length), next };
}

/** All rows of a list up to `max`, page by page. Throws Refusal. */
export async function askAll<T>(
  load: (cursor: string | undefined) => Promise<Page<T>>,
  max: number,
): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    found.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && found.length < max);
  return found;
}

/** What went wrong, as a Refusal, whatever was thrown. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  return new Refusal(0, "unreachable", "The service does not answer. The page goes on as soon as it does.");
}

/** The refusal that an answer's problem document tells. */
export function refusalFrom(status: number, problem: unknown): Refusal {
  const { code = "unknown", detail, errors } = (problem ?? {}) as Partial<Schemas["Problem"]>;
  return new Refusal(status, code, detail ?? `The service answered ${status}.`, errors);
}

async function answered<T>(call: Promise<Answer<T>>): Promise<Answer<T>> {
  const answer = await call.catch((error) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw refusalOf(error);
  });
  if (answer.response.ok) return answer;
  throw refusalFrom(answer.response.status, answer.error);
}

// What was sent, and not answered: the same again within this time is the same request, and is done once (contract 1.9).
const LOST_MAX_MS = 5 * 60_000;
const lost = new Map<string, { key: string; at: number }>();

async function sent(request: Request): Promise<Response> {
  const response = request.method === "POST" ? await sentOnce(request) : await authed(request);
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) clockOffsetMs.value = date - Date.now();
  return response;
}

async function sentOnce(request: Request): Promise<Response> {
  const known = request.headers.get("idempotency-key");
  const what = `${request.url} ${await request.clone().text()}`;
  const before = lost.get(what);
  const again = before !== undefined && Date.now() - before.at < LOST_MAX_MS;
  const key = known ?? (again ? before.key : newKey());
  request.headers.set("idempotency-key", key);
  lost.set(what, { key, at: Date.now() });
  const response = await authed(request);
  lost.delete(what);
  return response;
}
