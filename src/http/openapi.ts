import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { PROBLEMS } from "./problem.ts";
import { query } from "./input.ts";
import type { AnyRoute } from "./route.ts";

const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.enum(Object.keys(PROBLEMS) as [string, ...string[]]),
  request_id: z.string(),
  errors: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
  required_scope: z.string().optional(),
}).meta({ id: "Problem" });

/**
 * The OpenAPI 3.1 document of all routes (contract 5.2). It is made from the same definitions that parse and answer
 * requests, at the first request for it: the library costs start-up time.
 */
export async function openApiDocument(routes: readonly AnyRoute[], version: string): Promise<object> {
  const { createRoute, OpenAPIHono } = await import("@hono/zod-openapi");
  const app = new OpenAPIHono();
  app.openAPIRegistry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  app.openAPIRegistry.registerComponent("securitySchemes", "token", {
    type: "apiKey",
    in: "query",
    name: "token",
  });
  for (const route of routes) {
    app.openAPIRegistry.registerPath(createRoute({
      method: route.method.toLowerCase() as "get",
      path: route.path.replace(/:(\w+)/g, "{$1}"),
      operationId: route.operation,
      tags: [route.operation.split(".")[0] ?? ""],
      summary: route.summary,
      ...(route.description === undefined ? {} : { description: route.description }),
      ...(route.access === "public" ? { security: [] } : { security: [{ bearer: [] }, { token: [] }] }),
      request: requestOf(route),
      responses: responsesOf(route),
      ...(route.events === undefined ? {} : { "x-events": refsOf(app.openAPIRegistry, route.events) }),
      ...(route.access === "public" || route.access === "token" ? {} : { "x-required-scope": route.access }),
    }));
  }
  for (const path of OUTSIDE) app.openAPIRegistry.registerPath(createRoute(path));
  return app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "svc: agent orchestration service", version, license: { name: "MIT" } },
    servers: [{ url: "/" }],
  });
}

type Registry = { registerComponent: (type: "schemas", name: string, schema: object) => unknown };

/** The data of each event of a stream, as references: OpenAPI 3.1 itself has no words for what a stream sends. */
function refsOf(registry: Registry, events: Record<string, z.ZodType>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(events).map(([name, schema]) => {
      const component = schema.meta()?.id ?? name;
      registry.registerComponent("schemas", component, componentOf(schema, component));
      return [name, { $ref: `#/components/schemas/${component}` }];
    }),
  );
}

// What it refers to is a component already, since some answer has it, too.
function componentOf(schema: z.ZodType, component: string): object {
  const { $defs: parts } = z.toJSONSchema(schema);
  return JSON.parse(JSON.stringify(parts?.[component]).replaceAll("#/$defs/", "#/components/schemas/"));
}

function requestOf(route: AnyRoute) {
  const headers = {
    ...(route.idempotent ? { "idempotency-key": z.string().min(1).max(200).optional() } : {}),
    ...(route.events === undefined ? {} : { "last-event-id": z.string().optional() }),
  };
  return {
    ...(route.params === undefined ? {} : { params: z.object(route.params) }),
    query: query(route.query ?? {}).omit({ token: true }),
    ...(Object.keys(headers).length === 0 ? {} : { headers: z.object(headers) }),
    ...bodyOf(route),
  };
}

function bodyOf(route: AnyRoute) {
  const { form, body = route.ownBody } = route;
  if (body === undefined && form === undefined) return {};
  const file = z.string().meta({ format: "binary" });
  return {
    body: {
      required: body === undefined || !body.safeParse({}).success,
      content: {
        ...(body === undefined ? {} : { "application/json": { schema: body } }),
        ...(form instanceof z.ZodObject
          ? {
            "multipart/form-data": {
              schema: form.extend({ file: body === undefined ? file : file.optional() }),
            },
          }
          : {}),
      },
    },
  };
}

function problem(description: string) {
  return { description, content: { "application/problem+json": { schema: problemSchema } } };
}

function responsesOf(route: AnyRoute) {
  const headers: Record<string, object> = { "X-Request-Id": { schema: { type: "string" } } };
  if (route.paged) {
    headers["X-Total-Count"] = { schema: { type: "string" }, description: "exact up to 10000, then 10000+" };
    headers.Link = { schema: { type: "string" }, description: "RFC 8288; rel=next" };
  }
  if (route.warns) {
    headers.Warning = { schema: { type: "string" }, description: "RFC 9111; what looks wrong" };
  }
  if (route.idempotent) headers["Idempotent-Replayed"] = { schema: { type: "string" } };
  const content = route.status === 204 || route.status === 303 ? undefined : {
    [route.responseType ?? "application/json"]: { schema: route.response },
    ...(route.streams ? { "text/event-stream": { schema: z.string() } } : {}),
  };
  // 403 is also the answer to a wrong Host header.
  const statuses = new Set([400, 403, 405, 429, 500, 503]);
  // What a run may not see is answered as not found, with or without an id in the path.
  if (route.access !== "public") statuses.add(401).add(404);
  if (route.operation === "auth.login" || route.operation === "auth.refresh") statuses.add(401);
  if (route.status === 303) statuses.add(404).add(409);
  for (const status of route.refusals ?? []) statuses.add(status);
  if (route.method !== "GET") statuses.add(409).add(413).add(507);
  if (route.body !== undefined || route.form !== undefined) statuses.add(415);
  const errors = [...statuses].sort().map((status) => {
    const titles = Object.values(PROBLEMS).filter((entry) => entry.status === status).map((entry) =>
      entry.title
    );
    return [status, problem(titles.join(" / "))] as const;
  });
  const success = { description: route.summary, headers, ...(content === undefined ? {} : { content }) };
  return { [route.status]: success, ...Object.fromEntries(errors) };
}

const statusSchema = z.strictObject({ status: z.string() });
const json = (description: string) => ({
  description,
  content: { "application/json": { schema: statusSchema } },
});

/** What stands outside of /api (contract 5.2). */
const OUTSIDE: RouteConfig[] = [
  {
    method: "get",
    path: "/livez",
    operationId: "outside.livez",
    tags: ["outside"],
    summary: "Whether the process answers",
    security: [],
    responses: { 200: json("it does") },
  },
  {
    method: "get",
    path: "/readyz",
    operationId: "outside.readyz",
    tags: ["outside"],
    summary: "Whether the service takes work",
    security: [],
    responses: { 200: json("it does"), 503: json("why not") },
  },
  {
    method: "get",
    path: "/metrics",
    operationId: "outside.metrics",
    tags: ["outside"],
    summary:
      "Metrics in the text format of Prometheus; no token is needed on this machine, else one with read:system",
    security: [{}, { bearer: [] }],
    responses: {
      200: { description: "the metrics", content: { "text/plain": { schema: z.string() } } },
      401: problem("no token, from another machine"),
      403: problem("the token lacks read:system"),
    },
  },
  {
    method: "post",
    path: "/mcp",
    operationId: "outside.mcp",
    tags: ["outside"],
    summary:
      "The same operations as tools of the Model Context Protocol (Streamable HTTP), with the token's scopes",
    security: [{ bearer: [] }],
    request: {
      body: { content: { "application/json": { schema: z.looseObject({ jsonrpc: z.literal("2.0") }) } } },
    },
    responses: {
      200: {
        description: "JSON-RPC, or a stream of it",
        content: { "application/json": { schema: z.unknown() }, "text/event-stream": { schema: z.string() } },
      },
      202: { description: "a notification was taken" },
      401: problem("no token"),
    },
  },
];
