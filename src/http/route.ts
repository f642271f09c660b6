import type { z } from "zod";
import type { Answer } from "../api/call/answer.ts";
import type { Call } from "../api/call/call.ts";
import type { Operations } from "../api/operations.ts";
import type { Access } from "../domain/call/access.ts";
import type { HttpDeps, StreamDeps } from "./http_deps.ts";
import type { CountedBody } from "./server/body_budget.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

interface RouteRequest<Params, Query, Body> {
  api: Operations;
  streams: StreamDeps & Pick<HttpDeps, "maskOfRun">;
  call: Call;
  params: Params;
  query: Query;
  body: Body;
  /** The address of the client, which trusted proxies report. */
  address: string;
  raw: Request;
  /** Counts the bytes of a body from a caller without a token. null for routes that need a token. */
  counted: CountedBody | null;
}

type Shape = Record<string, z.ZodType>;

/** An operation of the REST API, for routing, validation, the OpenAPI document and the types of the CLI. */
export interface Route<
  M extends Method = Method,
  P extends string = string,
  Params extends Shape = Shape,
  Query extends Shape = Shape,
  Body extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
> {
  method: M;
  /** A pattern of Hono: `/api/workers/:id`. */
  path: P;
  /** Must be equal to the table of rules, or the service does not start (reliability AUT-10). */
  access: Access;
  /** Operation id of the OpenAPI document, such as `worker.create`. */
  operation: string;
  summary: string;
  description?: string;
  params?: Params;
  query?: Query;
  body?: Body;
  /** Schema of a body that the handler reads; only for the OpenAPI document. */
  ownBody?: z.ZodType;
  /** Body limit of the route instead of BODY_MAX_BYTES or AUTH_BODY_MAX_BYTES (contract 1.8). */
  bodyMaxBytes?: number;
  /** Text fields of a multipart form with a file. A route with `body` and `form` accepts both. */
  form?: z.ZodType;
  /** Status of the response; 200 by default. */
  status?: 201 | 202 | 204 | 303;
  /** Additional error statuses for the OpenAPI document. */
  refusals?: number[];
  response: Output;
  /** Content type of a response that is not JSON. */
  responseType?: "text/plain" | "text/x-diff" | "text/event-stream" | "application/x-tar" | "*/*";
  /** Schema of the JSON that a query asks for instead of responseType. */
  jsonResponse?: z.ZodType;
  /** Responds with an event stream unless the client accepts only JSON. */
  streams?: boolean;
  /** Data schemas of streamed events by event name. */
  events?: Record<string, z.ZodType>;
  /** May set the header Warning. */
  warns?: boolean;
  /** False for an array of computed values, `cursor` for one without a count. Every other array has all paging headers. */
  paged?: false | "cursor";
  /** Accepts the header Idempotency-Key. */
  idempotent?: boolean;
  handle: (
    request: RouteRequest<
      { [K in keyof Params]: z.output<Params[K]> },
      { [K in keyof Query]: z.output<Query[K]> },
      z.output<Body>
    >,
  ) => Promise<Answer<z.output<Output>> | Response>;
}

/** Declares the route of `"GET /api/workers/:id"`. Infers the input types of its handler. */
export function defineRoute<
  const M extends Method,
  const P extends string,
  // deno-lint-ignore ban-types
  Params extends Shape = {},
  // deno-lint-ignore ban-types
  Query extends Shape = {},
  Body extends z.ZodType = z.ZodUndefined,
  Output extends z.ZodType = z.ZodType,
>(
  endpoint: `${M} ${P}`,
  definition: Omit<Route<M, P, Params, Query, Body, Output>, "method" | "path">,
): Route<M, P, Params, Query, Body, Output> {
  const [method, path] = endpoint.split(" ");
  return { method: method as M, path: path as P, ...definition };
}

// deno-lint-ignore no-explicit-any
export type AnyRoute = Route<Method, string, any, any, any, any>;

type Input<S> =
  & { [K in keyof S as S[K] extends z.ZodOptional | z.ZodDefault ? never : K]: Wire<S[K]> }
  & {
    [K in keyof S as S[K] extends z.ZodOptional | z.ZodDefault ? K : never]?: Wire<S[K]>;
  };

// Clients may pass numbers and booleans, which a query sends as text.
type Wire<S> = S extends z.ZodType ? z.input<S> | number | boolean : never;

/** Maps `"GET /api/workers/:id"` to its query, body and response, as a type for clients. */
export type RouteTypes<R extends AnyRoute> = {
  [E in R as `${E["method"]} ${E["path"]}`]: {
    query: Input<NonNullable<E["query"]>>;
    body: E["body"] extends z.ZodType | undefined ? z.input<NonNullable<E["body"]>> : undefined;
    response: z.output<E["response"]>;
  };
};
