import {
  createMcpHandler,
  fromJsonSchema,
  type jsonSchemaValidator,
  McpServer,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { ruleOf } from "../domain/call/access.ts";
import type { Caller } from "../domain/call/scope.ts";
import { VERSION } from "../base/version.ts";
import { mayEnter } from "./authorize.ts";
import { BODY_MAX_BYTES } from "./input.ts";
import type { AnyRoute } from "./route.ts";

/** Sends a request through the application, as if it had come over the network. */
type Dispatch = (request: Request) => Promise<Response>;

/** What one caller may call, and with which token. */
interface McpDoor {
  routes: readonly AnyRoute[];
  caller: Caller;
  token: string;
  dispatch: Dispatch;
}

// Operations that are not for agents: chats of people, what operators do, and answers that are not for a model.
const NOT_FOR_AGENTS = ["chat", "auth", "system", "event"];

/**
 * Streamable HTTP of the Model Context Protocol for agents, without sessions. The tools are the REST routes that the scopes
 * of the caller allow. Closes open connections when `stopping` aborts.
 */
export function createMcp(stopping: AbortSignal): (request: Request, door: McpDoor) => Promise<Response> {
  const handler = createMcpHandler(({ authInfo }) => serverFor(authInfo?.extra?.door as McpDoor), {
    maxRequestBodySize: BODY_MAX_BYTES,
  });
  stopping.addEventListener("abort", () => void handler.close());
  return (request, door) => {
    const { token, caller } = door;
    const authInfo = { token, clientId: caller.subject, scopes: [...caller.scopes], extra: { door } };
    // Without the request's own signal, which Deno aborts after success, too (facts, Deno 2).
    const { method, headers, body } = request;
    return handler.fetch(new Request(request.url, { method, headers, body }), { authInfo });
  };
}

/** The routes that are tools for this caller. */
export function toolsOf(routes: readonly AnyRoute[], caller: Caller): AnyRoute[] {
  return routes.filter((route) => {
    const [noun = ""] = route.operation.split(".");
    if (route.access === "public" || NOT_FOR_AGENTS.includes(noun)) return false;
    const readable = route.responseType === undefined || route.responseType === "text/plain";
    return readable && mayEnter(caller, ruleOf(route.method, route.path));
  });
}

function serverFor(door: McpDoor): McpServer {
  const server = new McpServer({ name: "svc", version: VERSION });
  for (const route of toolsOf(door.routes, door.caller)) {
    const description = route.description === undefined
      ? route.summary
      : `${route.summary}. ${route.description}`;
    server.registerTool(toolName(route), {
      description,
      inputSchema: fromJsonSchema<Arguments>(inputOf(route), TRUSTING),
      annotations: { readOnlyHint: route.method === "GET", destructiveHint: route.method === "DELETE" },
    }, async (input: Arguments, { mcpReq: { signal } }) => {
      const response = await door.dispatch(requestOf(route, input, door.token));
      const text = await textOf(response, signal);
      return { content: [{ type: "text" as const, text }], ...(response.ok ? {} : { isError: true }) };
    });
  }
  return server;
}

type Arguments = Record<string, unknown>;

const TOOL_ANSWER_MAX_BYTES = 1024 * 1024;

// A log, also one that goes on, has no other bound, and no model reads that much. A wait or a log ends when its client has left.
async function textOf({ body }: Response, signal: AbortSignal): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  const decoder = new TextDecoder();
  let text = "";
  let left = TOOL_ANSWER_MAX_BYTES;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += decoder.decode(part.value.subarray(0, left), { stream: true });
      if (part.value.length > left) return text + CUT;
      left -= part.value.length;
    }
    return text + decoder.decode();
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

const CUT = `\n[Cut after ${TOOL_ANSWER_MAX_BYTES} bytes. Ask for less: the end of a log with tail, ` +
  "a list in smaller pages (page_size, then page or cursor).]";

// The route that gets the input checks it, with messages that name the field.
const TRUSTING: jsonSchemaValidator = {
  getValidator<T>() {
    // The schema promises a T that is not undefined.
    return (input: unknown) => ({
      valid: true as const,
      data: input as NonNullable<T>,
      errorMessage: undefined,
    });
  },
};

/** `worker.get` -> `worker_get`. */
export function toolName(route: AnyRoute): string {
  return route.operation.replaceAll(".", "_");
}

type Schema = Parameters<typeof fromJsonSchema>[0];

const known = new WeakMap<AnyRoute, Schema>();

/** One flat object of everything that a route takes: path, query and body. */
function inputOf(route: AnyRoute): Schema {
  const made = known.get(route) ?? z.toJSONSchema(
    z.strictObject({ ...bodyShape(route), ...route.query, ...route.params }),
    { io: "input", unrepresentable: "any" },
  ) as unknown as Schema;
  known.set(route, made);
  return made;
}

function bodyShape(route: AnyRoute): Record<string, z.ZodType> {
  if (!(route.body instanceof z.ZodObject)) return {};
  // Fields that an update ignores are accepted for clients that send back what they read; a model need not know them.
  return Object.fromEntries(
    Object.entries(route.body.shape).filter(([, field]) => !isIgnored(field as z.ZodType)),
  ) as Record<string, z.ZodType>;
}

function isIgnored(field: z.ZodType): boolean {
  return field instanceof z.ZodUnknown ||
    field instanceof z.ZodOptional && field.unwrap() instanceof z.ZodUnknown;
}

function requestOf(route: AnyRoute, input: Arguments, token: string): Request {
  const left = { ...input };
  const path = route.path.replace(/:(\w+)/g, (_match, name: string) => {
    const value = String(left[name] ?? "");
    delete left[name];
    // An empty part or a dot would be another path; a blank names nothing, and the answer says so.
    return encodeURIComponent(/^\.{0,2}$/.test(value) ? " " : value.toWellFormed());
  });
  const url = new URL(path, "http://localhost");
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (route.body === undefined) {
    for (const [name, value] of Object.entries(left)) {
      for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
    }
    return new Request(url, { method: route.method, headers });
  }
  headers["content-type"] = "application/json";
  return new Request(url, { method: route.method, headers, body: JSON.stringify(left) });
}
