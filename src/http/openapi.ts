import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { completionErrorSchema } from "../domain/chat/completion.ts";
import { PROBLEMS } from "./problem.ts";
import { buildQuerySchema } from "./input.ts";
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

export type OpenApiVersion = "3.1.0" | "3.0.3";

/** Builds the OpenAPI document of all routes (contract 5.2). Loads its library on the first call to keep the start fast. */
export async function buildOpenApiDocument(
  routes: readonly AnyRoute[],
  version: string,
  openapi: OpenApiVersion = "3.1.0",
): Promise<object> {
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
      request: describeRequest(route),
      responses: describeResponses(route),
      ...(route.events === undefined
        ? {}
        : { "x-events": registerEvents(app.openAPIRegistry, route.events) }),
      ...(route.access === "public" || route.access === "token" ? {} : { "x-required-scope": route.access }),
    }));
  }
  for (const path of OUTSIDE) app.openAPIRegistry.registerPath(createRoute(path));
  const document = {
    openapi,
    info: { title: "svc: agent orchestration service", version, license: { name: "MIT" } },
    servers: [{ url: "/" }],
  };
  return openapi === "3.1.0" ? app.getOpenAPI31Document(document) : app.getOpenAPIDocument(document);
}

type Registry = { registerComponent: (type: "schemas", name: string, schema: object) => unknown };

/** Registers a schema for each event of a stream. OpenAPI 3.1 cannot describe streams, so `x-events` refers to the schemas. */
function registerEvents(registry: Registry, events: Record<string, z.ZodType>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(events).map(([name, schema]) => {
      const component = schema.meta()?.id ?? name;
      registry.registerComponent("schemas", component, buildComponent(schema, component));
      return [name, { $ref: `#/components/schemas/${component}` }];
    }),
  );
}

// Nested schemas are components already, because a response contains them.
function buildComponent(schema: z.ZodType, component: string): object {
  const { $defs: parts } = z.toJSONSchema(schema);
  return JSON.parse(JSON.stringify(parts?.[component]).replaceAll("#/$defs/", "#/components/schemas/"));
}

function describeRequest(route: AnyRoute) {
  const headers = {
    ...(route.idempotent ? { "idempotency-key": z.string().min(1).max(200).optional() } : {}),
    ...(route.events === undefined ? {} : { "last-event-id": z.string().optional() }),
  };
  return {
    ...(route.params === undefined ? {} : { params: z.object(route.params) }),
    query: buildQuerySchema(route.query ?? {}).omit({ token: true }),
    ...(Object.keys(headers).length === 0 ? {} : { headers: z.object(headers) }),
    ...describeBody(route),
  };
}

function describeBody(route: AnyRoute) {
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

function describeProblem(description: string) {
  return { description, content: { "application/problem+json": { schema: problemSchema } } };
}

// Clients of OpenAI's API know only its form.
function describeError({ path }: AnyRoute, description: string) {
  if (!path.startsWith("/v1/")) return describeProblem(description);
  return { description, content: { "application/json": { schema: completionErrorSchema } } };
}

function describeResponses(route: AnyRoute) {
  const headers: Record<string, object> = { "X-Request-Id": { schema: { type: "string" } } };
  if (route.response instanceof z.ZodArray && route.paged !== false) {
    if (route.paged !== "cursor") {
      headers["X-Total-Count"] = {
        schema: { type: "string" },
        description: "exact up to 10000, then 10000+",
      };
    }
    headers.Link = { schema: { type: "string" }, description: "RFC 8288; rel=next" };
  }
  if (route.warns) {
    headers.Warning = {
      schema: { type: "string" },
      description: "RFC 9111; a possible mistake in the request",
    };
  }
  if (route.idempotent) headers["Idempotent-Replayed"] = { schema: { type: "string" } };
  const content = route.status === 204 || route.status === 303 ? undefined : {
    [route.responseType ?? "application/json"]: { schema: route.response },
    ...(route.jsonResponse === undefined ? {} : { "application/json": { schema: route.jsonResponse } }),
    ...(route.streams ? { "text/event-stream": { schema: z.string() } } : {}),
  };
  // A wrong Host header is 403.
  const statuses = new Set([400, 403, 405, 429, 500, 503]);
  // An object that a run may not see is 404, with or without an id in the path.
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
    return [status, describeError(route, titles.join(" / "))] as const;
  });
  const success = { description: route.summary, headers, ...(content === undefined ? {} : { content }) };
  return { [route.status ?? 200]: success, ...Object.fromEntries(errors) };
}

const statusSchema = z.strictObject({ status: z.string() });
const describeStatus = (description: string) => ({
  description,
  content: { "application/json": { schema: statusSchema } },
});

/** Paths outside /api (contract 5.2). */
const OUTSIDE: RouteConfig[] = [
  {
    method: "get",
    path: "/livez",
    operationId: "outside.livez",
    tags: ["outside"],
    summary: "Check that the process responds",
    security: [],
    responses: { 200: describeStatus("alive") },
  },
  {
    method: "get",
    path: "/readyz",
    operationId: "outside.readyz",
    tags: ["outside"],
    summary: "Check that the service accepts work",
    security: [],
    responses: { 200: describeStatus("ready"), 503: describeStatus("not ready, with the status") },
  },
  {
    method: "get",
    path: "/metrics",
    operationId: "outside.metrics",
    tags: ["outside"],
    summary:
      "Metrics in the text format of Prometheus. Callers on other machines need a token with read:system",
    security: [{}, { bearer: [] }],
    responses: {
      200: { description: "the metrics", content: { "text/plain": { schema: z.string() } } },
      401: describeProblem("no token, from another machine"),
      403: describeProblem("the token lacks read:system"),
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
      202: { description: "notification accepted" },
      401: describeProblem("no token"),
    },
  },
];
