import type { Hono } from "hono";
import { z } from "zod";
import type { Authentication } from "../api/authority.ts";
import type { Call, IdempotencyKey, Service } from "../api/service.ts";
import { digest } from "../base/digest.ts";
import { ruleOf } from "../domain/access.ts";
import { invalid, notFound, ServiceError } from "../domain/error.ts";
import { totalText } from "../domain/page.ts";
import type { Claims } from "../base/token.ts";
import { authenticate } from "./authenticate.ts";
import { authorize } from "./authorize.ts";
import { parse, query, readJson, readQuery } from "./input.ts";
import type { Answer, AnyRoute, NextPage } from "./route.ts";

/** What the server knows of a request beside the request itself. */
export interface Connection {
  address: string;
}

export type App = Hono<{ Bindings: Connection; Variables: { requestId: string } }>;

const ANONYMOUS = { subject: "anonymous", scopes: [], run: null };
const JSON_TYPE = "application/json";

/**
 * Puts a route into the app: authenticate, authorise, parse, handle, answer, in this order, so that no caller learns
 * about input rules or objects without the right to.
 */
export function mount(app: App, service: Service, route: AnyRoute): void {
  const querySchema = query(route.query ?? {});
  const rule = ruleOf(route.method, route.path);
  const paramsSchema = route.params === undefined ? null : z.object(route.params);
  app.on(route.method, route.path, async (c) => {
    const request = c.req.raw;
    const url = new URL(request.url);
    const identity = route.access === "public" ? null : await authenticate(service, request, url);
    const caller = identity?.caller ?? ANONYMOUS;
    authorize(caller, rule);
    checkStopping(service, route, identity);
    const params = paramsSchema === null ? {} : parseParams(paramsSchema, c.req.param(), route);
    const parsedQuery = url.search === "" && route.query === undefined
      ? {}
      : parse(querySchema, readQuery(url));
    const isForm = route.form !== undefined &&
      /^multipart\//i.test(request.headers.get("content-type") ?? "");
    const body = route.body === undefined || isForm ? undefined : parse(route.body, await readJson(request));
    const call: Call = {
      caller,
      idempotency: route.idempotent ? idempotencyKey(request, caller.subject, url.pathname, body) : null,
    };
    const claims: Claims | null = identity?.claims ?? null;
    const input = {
      service,
      call,
      params,
      query: parsedQuery,
      body,
      address: c.env.address,
      raw: request,
      claims,
    };
    const answer = await route.handle(input);
    const response = respond(answer, route, url);
    return request.method === "HEAD" ? await headOf(response, "response" in answer) : response;
  });
}

// Hono leaves the body out, and the length would be 0. The body is not read, so its source is stopped now.
async function headOf(response: Response, streamed: boolean): Promise<Response> {
  if (streamed) await response.body?.cancel();
  else response.headers.set("content-length", String((await response.arrayBuffer()).byteLength));
  return response;
}

// While runs are being drained, agents may still finish their work; people's new work has to wait for the next start.
function checkStopping(service: Service, route: AnyRoute, identity: Authentication | null): void {
  if (service.state !== "stopping" || route.method === "GET" || identity?.caller.run) return;
  throw new ServiceError("unavailable", "Cannot take this now: the service is stopping; try again", {
    retry_after_s: 5,
  });
}

// A malformed id names nothing, just like an unknown one (contract 1).
function parseParams(
  schema: z.ZodObject,
  values: Record<string, string>,
  route: AnyRoute,
): Record<string, unknown> {
  const result = schema.safeParse(values);
  if (result.success) return result.data;
  const name = String(result.error.issues[0]?.path[0] ?? "id");
  throw notFound(nounOf(route.path, name), (values[name] ?? "").slice(0, 100));
}

/** What a parameter of a path names: the collection before it in the path, unless its own name says it. */
function nounOf(path: string, name: string): string {
  const [, noun = "thing"] = /^(\w+)_id$/.exec(name) ?? new RegExp(`/([a-z]+?)s?/:${name}\\b`).exec(path) ??
    [];
  return noun;
}

function idempotencyKey(
  request: Request,
  subject: string,
  path: string,
  body: unknown,
): IdempotencyKey | null {
  const key = request.headers.get("idempotency-key");
  if (key === null) return null;
  if (!/^[\x21-\x7e]{1,200}$/.test(key)) throw invalid("Idempotency-Key", "must be 1-200 visible characters");
  return {
    key: digest(`${subject}\n${request.method} ${path}\n${key}`),
    fingerprint: digest(JSON.stringify(body) ?? ""),
  };
}

function respond(answer: Answer, route: AnyRoute, url: URL): Response {
  if ("response" in answer) return answer.response;
  const { status } = route;
  if ("none" in answer) return new Response(null, { status });
  const headers: Record<string, string> = { "content-type": JSON_TYPE };
  // Whoever needs no token gets one.
  if (route.access === "public") headers["cache-control"] = "no-store";
  if ("listing" in answer) {
    const { json, total } = answer.listing;
    headers["x-total-count"] = totalText(total);
    const { next } = answer.listing;
    if (next !== null) headers.link = nextLink(url, { name: "cursor", value: next });
    return new Response(json, { status, headers });
  }
  if ("items" in answer) {
    if (answer.next !== undefined) headers.link = nextLink(url, answer.next);
    return new Response(`[${answer.items.join(",")}]`, { status, headers });
  }
  if ("value" in answer) return new Response(JSON.stringify(answer.value), { status, headers });
  if (answer.replayed) headers["idempotent-replayed"] = "true";
  if (answer.warning !== undefined) headers.warning = `299 svc "${answer.warning}"`;
  return new Response(answer.json, { status, headers });
}

// The token never travels on in a link (reliability SEC-1).
function nextLink(url: URL, { name, value }: NextPage): string {
  const next = new URLSearchParams(url.search);
  next.delete("token");
  next.delete("page");
  next.set(name, value);
  return `<${url.pathname}?${next}>; rel="next"`;
}
