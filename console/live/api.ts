import type { components, paths } from "#schema";
import createClient from "openapi-fetch";
import { ApiError, toApiError } from "./api_error.ts";
import { clockOffsetMs } from "./clock.ts";
import { sendAuthorized } from "./session.ts";

/** The REST API with the session of the signed-in user, typed from its OpenAPI document. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

export type Schemas = components["schemas"];
export type { operations } from "#schema";

/** The paths that answer GET with JSON, with their parameters and their data. */
export type GetPath = {
  [P in keyof paths]: GetData<P> extends never ? never : P;
}[keyof paths];
export type GetParams<P extends keyof paths> = paths[P] extends { get: { parameters: infer Params } } ? Params
  : never;
export type GetData<P extends keyof paths> = paths[P] extends
  { get: { responses: { 200: { content: { "application/json": infer Data } } } } } ? Data : never;

/** The paths that answer GET with a list, with the type of a row and the filters of the list. */
export type ListPath<Row = { id: string }> = {
  [P in GetPath]: GetData<P> extends Row[] ? P : never;
}[GetPath];
export type ListRow<P extends GetPath, Row = { id: string }> = Extract<GetData<P>, Row[]>[number];
export type ListFilters<P extends GetPath> = GetParams<P> extends { query?: infer Query }
  ? { [Name in keyof NonNullable<Query>]?: string }
  : never;

/** Creates an idempotency key. */
export function createKey(): string {
  return `console-${Date.now()}-${Math.random().toString(36).slice(2)}`;
}

export interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the data of a call. Throws ApiError. */
export async function load<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await check(call)).data as T;
}

export interface Page<T> {
  items: T[];
  /** The total in the notation of the service, e.g. `10000+`. */
  total: string;
  /** The cursor of the next page. */
  next: string | null;
}

/** Returns one page of a list call. Throws ApiError. */
export async function loadPage<T>(call: Promise<Answer<T[]>>): Promise<Page<T>> {
  const { data = [], response } = await check(call);
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  const next = link === undefined ? null : new URL(link, location.origin).searchParams.get("cursor");
  return { items: data, total: response.headers.get("x-total-count") ?? String(data.length), next };
}

/** Returns the rows of a list call up to `max`, page by page. Throws ApiError. */
export async function loadAll<T>(
  call: (cursor: string | undefined) => Promise<Answer<T[]>>,
  max = 1_000,
): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await loadPage(call(cursor));
    found.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && found.length < max);
  return found;
}

const PAGE_SIZE = 100;

/** Builds the query of a list from its filters. Leaves out empty filters. */
export function buildQuery<T extends Record<string, string>>(filters: T, cursor?: string) {
  const given = Object.entries({ ...filters, cursor: cursor ?? "" }).filter(([, value]) => value !== "");
  return { page_size: PAGE_SIZE, ...Object.fromEntries(given) } as
    & { page_size: number }
    & Partial<T & { cursor: string }>;
}

export function parseProblem(status: number, problem: unknown): ApiError {
  const { code = "unknown", detail, errors } = (problem ?? {}) as Partial<Schemas["Problem"]>;
  return new ApiError(status, code, detail ?? `The service returned ${status}.`, errors);
}

async function check<T>(call: Promise<Answer<T>>): Promise<Answer<T>> {
  const answer = await call.catch((error) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw toApiError(error);
  });
  if (answer.response.ok) return answer;
  throw parseProblem(answer.response.status, answer.error);
}

// How long an unanswered request keeps its idempotency key, so that the service runs repetitions once.
const REPEAT_MAX_MS = 5 * 60_000;
const unanswered = new Map<string, { key: string; at: number }>();

async function send(request: Request): Promise<Response> {
  const response = request.method === "POST" ? await sendOnce(request) : await sendAuthorized(request);
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) clockOffsetMs.value = date - Date.now();
  return response;
}

async function sendOnce(request: Request): Promise<Response> {
  const content = `${request.url} ${await request.clone().text()}`;
  const before = unanswered.get(content);
  const repeated = before !== undefined && Date.now() - before.at < REPEAT_MAX_MS;
  const key = request.headers.get("idempotency-key") ?? (repeated ? before.key : createKey());
  request.headers.set("idempotency-key", key);
  unanswered.set(content, { key, at: Date.now() });
  const response = await sendAuthorized(request);
  unanswered.delete(content);
  return response;
}
