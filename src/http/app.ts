import { Hono } from "hono";
import { cors } from "hono/cors";
import { getRule } from "../domain/call/access.ts";
import { ServiceError } from "../domain/call/error.ts";
import { load } from "../base/lazy_import.ts";
import { createLogger } from "../base/log.ts";
import { VERSION } from "../base/version.ts";
import { authorize } from "./authorize.ts";
import { authenticate, checkHost, isLoopback, readToken } from "./authenticate.ts";
import { CONSOLE_PATHS, mountConsole } from "./console.ts";
import { DOCS_PATHS, mountDocs } from "./docs.ts";
import type { App } from "./app_types.ts";
import type { HttpDeps } from "./http_deps.ts";
import { mountGateway } from "./gateway/gateway.ts";
import { mountHealth } from "./health.ts";
import { mountMetrics } from "./metrics.ts";
import { BOX_PEER, checkBoxPath } from "./box_paths.ts";
import { BODY_MAX_BYTES, readBody } from "./input.ts";
import { mount } from "./mount.ts";
import { buildOpenApiDocument, type OpenApiVersion } from "./openapi.ts";
import { completionRoutes } from "./openai/routes.ts";
import { answerError } from "./openai/problem.ts";
import type { AnyRoute, RouteTypes } from "./route.ts";
import { authRoutes } from "./routes/auth.ts";
import { chatRoutes } from "./routes/chat.ts";
import { departmentRoutes } from "./routes/department.ts";
import { budgetRoutes } from "./routes/budget.ts";
import { engineRoutes } from "./routes/engine.ts";
import { conversationRoutes, searchRoutes } from "./routes/conversation.ts";
import { auditRoutes, eventRoutes } from "./routes/event.ts";
import { executionRoutes } from "./routes/execution.ts";
import { fleetRoutes } from "./routes/fleet.ts";
import { hookRoutes } from "./routes/hook.ts";
import { inboxRoutes } from "./routes/inbox.ts";
import { memoryRoutes } from "./routes/memory.ts";
import { messageRoutes } from "./routes/message.ts";
import { platformRoutes } from "./routes/platform.ts";
import { approvalRoutes, questionRoutes } from "./routes/question.ts";
import { queueRoutes } from "./routes/queue.ts";
import { scheduleRoutes } from "./routes/schedule.ts";
import { sessionRoutes } from "./routes/session.ts";
import { runnerRoutes } from "./routes/runner.ts";
import { systemRoutes } from "./routes/system.ts";
import { taskRoutes } from "./routes/task.ts";
import { usageRoutes } from "./routes/usage.ts";
import { secretRoutes } from "./routes/secret.ts";
import { tokenRoutes } from "./routes/token.ts";
import { deviceRoutes, userRoutes } from "./routes/user.ts";
import { webhookRoutes } from "./routes/webhook.ts";
import { workerRoutes } from "./routes/worker.ts";

export const ROUTES = [
  ...authRoutes,
  ...workerRoutes,
  ...taskRoutes,
  ...scheduleRoutes,
  ...queueRoutes,
  ...approvalRoutes,
  ...questionRoutes,
  ...inboxRoutes,
  ...executionRoutes,
  ...sessionRoutes,
  ...conversationRoutes,
  ...searchRoutes,
  ...memoryRoutes,
  ...departmentRoutes,
  ...messageRoutes,
  ...chatRoutes,
  ...eventRoutes,
  ...systemRoutes,
  ...userRoutes,
  ...tokenRoutes,
  ...deviceRoutes,
  ...secretRoutes,
  ...auditRoutes,
  ...budgetRoutes,
  ...engineRoutes,
  ...usageRoutes,
  ...fleetRoutes,
  ...platformRoutes,
  ...hookRoutes,
  ...webhookRoutes,
  ...runnerRoutes,
  ...completionRoutes,
] as const;

/** The type of the API for the client of the command line. */
export type { DiffStat } from "../domain/work/tree.ts";

export type Api = RouteTypes<(typeof ROUTES)[number]>;

// Paths without a token (contract 5.2). /metrics needs a token from other machines.
const OPEN_PATHS = ["/livez", "/readyz", "/metrics", "/openapi.json", ...DOCS_PATHS];

// The handler checks the token. Each tool call is authorized by its route.
const MCP_PATH = "/mcp";

const log = createLogger("http");

/** Creates the HTTP application. Throws when a route has no declared access rule. */
export function createApp(deps: HttpDeps): App {
  const app: App = new Hono();
  app.use(async (c, next) => {
    const requestId = readRequestId(c.req.raw);
    c.set("requestId", requestId);
    const started = performance.now();
    await next();
    // The answer of a gateway has the id of its upstream.
    if (!c.res.headers.has("x-request-id")) c.res.headers.set("x-request-id", requestId);
    // Log only the path: a query may contain a token (reliability SEC-1).
    log.debug("{method} {path} {status} {ms} ms", {
      method: c.req.method,
      path: c.req.path,
      status: c.res.status,
      ms: Math.round(performance.now() - started),
      request_id: requestId,
    });
  });
  app.onError((error, c) => answerError(error, c.req.path, c.get("requestId")));
  const { openConsole } = deps;
  const openPaths = [...OPEN_PATHS, ...(openConsole === null ? [] : CONSOLE_PATHS)];
  app.notFound((c) => {
    const error = createRouteError(c.req.method, c.req.path, openPaths);
    return answerError(error, c.req.path, c.get("requestId"));
  });

  const { allowed_hosts, allowed_origins, host } = deps.hosts;
  app.use(async (c, next) => {
    checkHost(c.req.header("host") ?? new URL(c.req.url).host, allowed_hosts, isLoopback(host));
    await next();
  });
  app.use(async (c, next) => {
    if (c.env.address === BOX_PEER) checkBoxPath(c.req.path);
    await next();
  });
  mountGateway(app, deps);
  if (allowed_origins.length > 0) {
    app.use(cors({
      origin: [...allowed_origins],
      exposeHeaders: ["X-Total-Count", "Link", "X-Request-Id", "Idempotent-Replayed", "Retry-After"],
      maxAge: 600,
    }));
  }

  mountHealth(app, deps);
  mountMetrics(app, deps);
  const documents: Record<string, Promise<object>> = {};
  const describe = (openapi: OpenApiVersion) =>
    documents[openapi] ??= buildOpenApiDocument(ROUTES, VERSION, openapi);
  app.get("/openapi.json", async (c) => c.json(await describe("3.1.0")));
  mountDocs(app, () => describe("3.0.3"));
  if (openConsole !== null) mountConsole(app, openConsole);
  mountMcp(app, deps);
  for (const route of ROUTES) mount(app, deps, route);
  checkRules(app, ROUTES, openPaths);
  return app;
}

// The first request loads the library of the protocol.
function mountMcp(app: App, { authority, lifecycle, clock }: HttpDeps): void {
  let answering: Promise<ReturnType<typeof import("./mcp.ts").createMcp>> | null = null;
  app.all(MCP_PATH, async (c) => {
    const url = new URL(c.req.url);
    const { caller } = await authenticate(authority, c.req.raw, url);
    c.env.onCaller?.(caller);
    if (caller.runner !== undefined) authorize(caller, { access: "token" });
    const bytes = await readBody(c.req.raw, BODY_MAX_BYTES, clock);
    refuseBatch(bytes);
    const body = bytes.length === 0 ? null : bytes as Uint8Array<ArrayBuffer>;
    answering ??= load<typeof import("./mcp.ts")>("./mcp.ts", import.meta.url)
      .then(({ createMcp }) => createMcp(lifecycle.stopping));
    const answer = await answering;
    const { method, headers } = c.req.raw;
    return await answer(new Request(url, { method, headers, body }), {
      routes: ROUTES,
      caller,
      token: readToken(c.req.raw, url) ?? "",
      dispatch: async (request) => await app.fetch(request, c.env),
    });
  });
}

/** Describes the tools of runs with these scopes, for `svc mcp` before a run. */
export async function describeTools(rights: string): Promise<string> {
  const { describeServer } = await load<typeof import("./mcp.ts")>("./mcp.ts", import.meta.url);
  return JSON.stringify(await describeServer(ROUTES, rights.split(" ")));
}

// White space and the byte order mark may precede a JSON text.
const SPACE = [0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf];

// Every limit of a request counts one call. The protocol has had no batches since 2025-06-18.
function refuseBatch(bytes: Uint8Array): void {
  const first = bytes.find((byte) => !SPACE.includes(byte));
  if (first !== "[".charCodeAt(0)) return;
  throw new ServiceError(
    "invalid_request",
    "Cannot accept a JSON-RPC batch: MCP does not support batches. Send one message per request.",
  );
}

function readRequestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[\w.:-]{1,100}$/.test(given) ? given : crypto.randomUUID();
}

/** Returns 405 with the allowed methods for a known path, else 404 (contract 1.7). */
function createRouteError(method: string, path: string, openPaths: readonly string[]): ServiceError {
  const allow = [
    ...ROUTES as readonly AnyRoute[],
    ...openPaths.map((open) => ({ method: "GET", path: open })),
  ]
    .filter((route) => buildPattern(route.path).test(path))
    .map((route) => route.method);
  if (allow.length === 0) {
    return new ServiceError(
      "not_found",
      `Cannot find ${method} ${path.slice(0, 200)}: no such route. See /openapi.json.`,
    );
  }
  return new ServiceError(
    "method_not_allowed",
    `Cannot ${method} this path: allowed are ${allow.join(", ")}`,
    {
      allow,
    },
  );
}

function buildPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/\./g, "\\.").replace(/:\w+/g, "[^/]+").replace(/\/\*$/, "/.*")}$`);
}

/** Throws when a route has no access rule, or a rule that differs from the table of rules (reliability AUT-10, USR-1). */
export function checkRules(
  app: App,
  routes: readonly AnyRoute[] = ROUTES,
  openPaths: readonly string[] = OPEN_PATHS,
): void {
  const declared = new Map(routes.map((route) => [`${route.method} ${route.path}`, route.access]));
  for (const { method, path } of app.routes) {
    if (method === "ALL" || openPaths.includes(path)) continue;
    const access = declared.get(`${method} ${path}`);
    if (!access) {
      throw new Error(`Cannot start: the route ${method} ${path} declares no access rule`);
    }
    if (getRule(method, path).access !== access) {
      throw new Error(
        `Cannot start: the route ${method} ${path} requires ${access}, and the table of rules does not`,
      );
    }
  }
}
