import {
  createMcpHandler,
  fromJsonSchema,
  type jsonSchemaValidator,
  McpServer,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { getRule } from "../domain/call/access.ts";
import type { Caller } from "../domain/call/scope.ts";
import type { ServerDescription } from "../domain/call/server_description.ts";
import { VERSION } from "../base/version.ts";
import { isAuthorized } from "./authorize.ts";
import { BODY_MAX_BYTES } from "./input.ts";
import type { AnyRoute } from "./route.ts";

/** Handles a request like one from the network. */
type Dispatch = (request: Request) => Promise<Response>;

interface McpSession {
  routes: readonly AnyRoute[];
  caller: Caller;
  token: string;
  dispatch: Dispatch;
}

// Operations for people and operators, and operations with responses that no model can read.
const NOT_FOR_AGENTS = ["chat", "auth", "system", "event", "approval", "completion", "model", "search"];

/**
 * Creates the handler of the Model Context Protocol (Streamable HTTP, without protocol sessions). The tools are the REST routes that the
 * scopes of the caller allow. Closes open connections when `stopping` aborts.
 */
export function createMcp(
  stopping: AbortSignal,
): (request: Request, session: McpSession) => Promise<Response> {
  const handler = createMcpHandler(({ authInfo }) => createServer(authInfo?.extra?.session as McpSession), {
    maxRequestBodySize: BODY_MAX_BYTES,
  });
  stopping.addEventListener("abort", () => void handler.close());
  return (request, session) => {
    const { token, caller } = session;
    const authInfo = { token, clientId: caller.subject, scopes: [...caller.scopes], extra: { session } };
    // Drop the signal of the request: Deno aborts it also after success (facts, Deno 2).
    const { method, headers, body } = request;
    return handler.fetch(new Request(request.url, { method, headers, body }), { authInfo });
  };
}

/** Lists the routes that are tools for this caller. */
export function listTools(routes: readonly AnyRoute[], caller: Caller): AnyRoute[] {
  return routes.filter((route) => {
    const [noun = ""] = route.operation.split(".");
    if (route.access === "public" || NOT_FOR_AGENTS.includes(noun)) return false;
    const readable = route.responseType === undefined || route.responseType === "text/plain";
    return readable && isAuthorized(caller, getRule(route.method, route.path));
  });
}

/** Describes the server for runs with these scopes. */
export async function describeServer(
  routes: readonly AnyRoute[],
  scopes: readonly string[],
): Promise<ServerDescription> {
  const caller: Caller = { subject: "", scopes, run: NO_RUN, person: null };
  const dispatch: Dispatch = () => Promise.reject(new Error("a description calls no tool"));
  const handler = createMcpHandler(() => createServer({ routes, caller, token: "", dispatch }));
  const ask = async (method: string, params: object) => {
    const response = await handler.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      }),
    );
    const text = await response.text();
    return JSON.parse(/^data:(.*)$/m.exec(text)?.[1] ?? text).result;
  };
  const initialize: Record<string, unknown> = {};
  for (const protocolVersion of SUPPORTED_PROTOCOL_VERSIONS) {
    const clientInfo = { name: "svc", version: VERSION };
    initialize[protocolVersion] = await ask("initialize", { protocolVersion, capabilities: {}, clientInfo });
  }
  try {
    return { initialize, tools: await ask("tools/list", {}) };
  } finally {
    await handler.close();
  }
}

const NO_RUN: Caller["run"] = {
  ...{ session_key: "", worker_id: "", task_id: "", execution_id: "", message_id: "" },
  ...{ attempt: 1, depth: 0 },
};

function createServer(session: McpSession): McpServer {
  const server = new McpServer({ name: "svc", version: VERSION });
  for (const route of listTools(session.routes, session.caller)) {
    const description = route.description === undefined
      ? route.summary
      : `${route.summary}. ${route.description}`;
    server.registerTool(formatToolName(route), {
      description,
      inputSchema: fromJsonSchema<Arguments>(buildInputSchema(route), ACCEPT_ALL),
      annotations: { readOnlyHint: route.method === "GET", destructiveHint: route.method === "DELETE" },
    }, async (input: Arguments, { mcpReq: { signal } }) => {
      const response = await session.dispatch(buildRequest(route, input, session.token));
      const text = await readText(response, signal);
      return { content: [{ type: "text" as const, text }], ...(response.ok ? {} : { isError: true }) };
    });
  }
  return server;
}

type Arguments = Record<string, unknown>;

const TOOL_ANSWER_MAX_BYTES = 1024 * 1024;

// A log has no other limit, and no model reads more. A wait or a log ends when its client disconnects.
async function readText({ body }: Response, signal: AbortSignal): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  const decoder = new TextDecoder();
  let text = "";
  let remainingBytes = TOOL_ANSWER_MAX_BYTES;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += decoder.decode(part.value.subarray(0, remainingBytes), { stream: true });
      if (part.value.length > remainingBytes) return text + CUT_NOTICE;
      remainingBytes -= part.value.length;
    }
    return text + decoder.decode();
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

const CUT_NOTICE = `\n[Cut after ${TOOL_ANSWER_MAX_BYTES} bytes. Request less: the end of a log with tail, ` +
  "or smaller pages of a list (page_size, then page or cursor).]";

// The route validates the input, with messages that name the field.
const ACCEPT_ALL: jsonSchemaValidator = {
  getValidator<T>() {
    return (input: unknown) => ({
      valid: true as const,
      data: input as NonNullable<T>,
      errorMessage: undefined,
    });
  },
};

/** Converts `worker.get` to `worker_get`. */
function formatToolName(route: AnyRoute): string {
  return route.operation.replaceAll(".", "_");
}

type Schema = Parameters<typeof fromJsonSchema>[0];

const schemas = new WeakMap<AnyRoute, Schema>();

/** Builds one flat schema of a route's path, query and body. */
function buildInputSchema(route: AnyRoute): Schema {
  const schema = schemas.get(route) ?? z.toJSONSchema(
    z.strictObject({ ...buildBodyShape(route), ...route.query, ...route.params }),
    { io: "input", unrepresentable: "any" },
  ) as unknown as Schema;
  schemas.set(route, schema);
  return schema;
}

function buildBodyShape(route: AnyRoute): Record<string, z.ZodType> {
  if (!(route.body instanceof z.ZodObject)) return {};
  // Updates ignore these fields, which clients send back with an object. A model does not need the fields.
  return Object.fromEntries(
    Object.entries(route.body.shape).filter(([, field]) => !isIgnored(field as z.ZodType)),
  ) as Record<string, z.ZodType>;
}

function isIgnored(field: z.ZodType): boolean {
  return field instanceof z.ZodUnknown ||
    field instanceof z.ZodOptional && field.unwrap() instanceof z.ZodUnknown;
}

function buildRequest(route: AnyRoute, input: Arguments, token: string): Request {
  const rest = { ...input };
  const path = route.path.replace(/:(\w+)/g, (_match, name: string) => {
    const value = String(rest[name] ?? "");
    delete rest[name];
    // An empty or dotted part would change the path. A blank gives `not_found`.
    return encodeURIComponent(/^\.{0,2}$/.test(value) ? " " : value.toWellFormed());
  });
  const url = new URL(path, "http://localhost");
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (route.body === undefined) {
    for (const [name, value] of Object.entries(rest)) {
      for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
    }
    return new Request(url, { method: route.method, headers });
  }
  headers["content-type"] = "application/json";
  return new Request(url, { method: route.method, headers, body: JSON.stringify(rest) });
}
