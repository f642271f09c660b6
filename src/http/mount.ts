import { z } from "zod";
import type { Authentication } from "../api/call/authority.ts";
import type { Call, IdempotencyKey } from "../api/call/call.ts";
import { digest } from "../base/bytes.ts";
import { getRule } from "../domain/call/access.ts";
import { invalid, notFound, ServiceError } from "../domain/call/error.ts";
import { formatTraceparent, readTraceparent } from "../domain/system/trace.ts";
import { runWithOrigin } from "../base/origin.ts";
import { type Caller, SYSTEM_ACTOR } from "../domain/call/scope.ts";
import { authenticate } from "./authenticate.ts";
import { authorize } from "./authorize.ts";
import {
  AUTH_BODY_MAX_BYTES,
  BODY_MAX_BYTES,
  buildQuerySchema,
  parseInput,
  readJson,
  readQuery,
} from "./input.ts";
import type { CountedBody } from "./server/body_budget.ts";
import type { Lifecycle } from "../api/call/services.ts";
import type { App, AppContext } from "./app_types.ts";
import type { HttpDeps } from "./http_deps.ts";
import { respond } from "./respond.ts";
import type { AnyRoute } from "./route.ts";

// Caller without authentication. The journal names the system as the actor.
const ANONYMOUS: Caller = { subject: SYSTEM_ACTOR, scopes: [], run: null, person: null };

/** Mounts a route. Authenticates and authorizes before parsing, so that callers without access learn nothing about input or objects. */
export function mount(app: App, deps: HttpDeps, route: AnyRoute): void {
  const { api, authority, lifecycle, runLimits, clock } = deps;
  const querySchema = buildQuerySchema(route.query ?? {});
  const rule = getRule(route.method, route.path);
  const paramsSchema = route.params === undefined ? null : z.object(route.params);
  const { bodyMaxBytes = isForUnknown(route) ? AUTH_BODY_MAX_BYTES : BODY_MAX_BYTES } = route;
  // Everything that a run sends may be stored and shown.
  const mask = ({ run }: Caller, body: unknown) =>
    run === null ? body : deps.maskOfRun(run.execution_id, body);
  const answerRequest = async (c: AppContext, counted: CountedBody | null) => {
    const request = c.req.raw;
    const url = new URL(request.url);
    const identity = route.access === "public" ? null : await authenticate(authority, request, url);
    const caller = identity?.caller ?? ANONYMOUS;
    if (identity !== null) c.env.onCaller?.(caller);
    authorize(caller, rule);
    checkStopping(lifecycle, route, identity);
    if (route.method !== "GET") await runLimits.take({ caller }, "changes");
    const params = paramsSchema === null ? {} : parseParams(paramsSchema, c.req.param(), route);
    const parsedQuery = url.search === "" && route.query === undefined
      ? {}
      : parseInput(querySchema, readQuery(url), "query");
    const isForm = route.form !== undefined &&
      /^multipart\//i.test(request.headers.get("content-type") ?? "");
    const body = route.body === undefined || isForm
      ? undefined
      : parseInput(route.body, mask(caller, await readJson(request, clock, bodyMaxBytes, counted)));
    const call: Call = {
      caller,
      findAccessEnd: () => identity === null ? Promise.resolve(null) : authority.findAccessEnd(identity),
      trace: isForUnknown(route) ? "" : readTrace(request),
      idempotency: route.idempotent ? buildIdempotencyKey(request, caller, url.pathname, body) : null,
    };
    const input = {
      api,
      streams: deps,
      call,
      params,
      query: parsedQuery,
      body,
      address: c.env.address,
      raw: request,
      counted,
    };
    const userAgent = request.headers.get("user-agent") ?? "";
    const origin = { actor: caller.subject, address: c.env.address, userAgent };
    const answer = await runWithOrigin(origin, () => route.handle(input));
    const response = answer instanceof Response ? answer : respond(answer, route, url);
    return request.method === "HEAD" ? await buildHeadResponse(response, response === answer) : response;
  };
  app.on(route.method, route.path, async (c) => {
    if (route.access !== "public") return await answerRequest(c, null);
    const counted = deps.unknownBodies.open();
    try {
      return await answerRequest(c, counted);
    } finally {
      counted.close();
    }
  });
}

// Anyone may send a header, so the trace of a caller without a login does not count.
function readTrace({ headers }: Request): string {
  const found = readTraceparent(headers.get("traceparent") ?? "");
  return found === null ? "" : formatTraceparent(found);
}

function isForUnknown({ access, path }: AnyRoute): boolean {
  return access === "public" || path.startsWith("/api/auth/");
}

// Hono drops the body of HEAD and would set its length to 0. Cancelling stops the source of a stream.
async function buildHeadResponse(response: Response, streamed: boolean): Promise<Response> {
  if (streamed) await response.body?.cancel();
  else response.headers.set("content-length", String((await response.arrayBuffer()).byteLength));
  return response;
}

// During a drain only agents and runners may change data. New work from people waits for the next start.
function checkStopping(lifecycle: Lifecycle, route: AnyRoute, identity: Authentication | null): void {
  if (lifecycle.state !== "stopping" || route.method === "GET") return;
  if (identity?.caller.run || identity?.caller.runner !== undefined) return;
  throw new ServiceError("unavailable", "Cannot accept the request: the service is stopping. Try again.", {
    retry_after_s: 5,
  });
}

// A malformed id gets the same response as an unknown one (contract 1.7).
function parseParams(
  schema: z.ZodObject,
  values: Record<string, string>,
  route: AnyRoute,
): Record<string, unknown> {
  const result = schema.safeParse(values);
  if (result.success) return result.data;
  const name = String(result.error.issues[0]?.path[0] ?? "id");
  throw notFound(findNoun(route.path, name), (values[name] ?? "").slice(0, 100));
}

/** Finds the noun of a path parameter: in its name (`worker_id`), else in the collection before it (`workers/:id`). */
function findNoun(path: string, name: string): string {
  const [, noun = "thing"] = /^(\w+)_id$/.exec(name) ?? new RegExp(`/([a-z]+?)s?/:${name}\\b`).exec(path) ??
    [];
  return noun;
}

function buildIdempotencyKey(
  request: Request,
  { subject, person, run }: Caller,
  path: string,
  body: unknown,
): IdempotencyKey | null {
  const key = request.headers.get("idempotency-key");
  if (key === null) return null;
  if (!/^[\x21-\x7e]{1,200}$/.test(key)) throw invalid("Idempotency-Key", "must be 1-200 visible characters");
  // All conversations of a worker share one subject. A run must not get the response of another conversation.
  const owner = person?.userId ?? run?.session_key ?? "";
  return {
    key: digest(`${subject} ${owner}\n${request.method} ${path}\n${key}`),
    fingerprint: digest(JSON.stringify(body) ?? ""),
  };
}
