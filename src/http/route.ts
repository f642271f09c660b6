import type { z } from "zod";
import type { Answer } from "../api/call/answer.ts";
import type { Call } from "../api/call/call.ts";
import type { Operations } from "../api/operations.ts";
import type { Access } from "../domain/call/access.ts";
import type { StreamParts } from "./http_deps.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What a handler gets, after authorisation, parsing and checks. */
interface RouteRequest<Params, Query, Body> {
  /** The operations. */
  api: Operations;
  /** What a stream needs. */
  streams: StreamParts;
  call: Call;
  params: Params;
  query: Query;
  body: Body;
  /** The address of the client, behind trusted proxies the one they name. */
  address: string;
  raw: Request;
}

type Shape = Record<string, z.ZodType>;

/** One operation of the REST API: everything that routing, checking, the OpenAPI document and the CLI's types need. */
export interface Route<
  M extends Method = Method,
  P extends string = string,
  Params extends Shape = Shape,
  Query extends Shape = Shape,
  Body extends z.ZodType = z.ZodType,
  Shown extends z.ZodType = z.ZodType,
> {
  method: M;
  /** Hono's form: `/api/workers/:id`. */
  path: P;
  /** As in the table of rules: a route without a rule, or with another one, stops the start (reliability AUT-10). */
  access: Access;
  /** `worker.create`: names the operation in the OpenAPI document. */
  operation: string;
  summary: string;
  /** More than a line, for the reference. */
  description?: string;
  params?: Params;
  query?: Query;
  body?: Body;
  /** What the body is, where the handler reads it itself: for the OpenAPI document. */
  ownBody?: z.ZodType;
  /** The largest JSON body, where it is more than elsewhere (contract 1.8). */
  bodyMaxBytes?: number;
  /** The texts of a multipart form with a file, taken instead of a JSON body, or beside it when both are declared. */
  form?: z.ZodType;
  status: 200 | 201 | 202 | 204 | 303;
  /** Statuses of refusals beside those that every such route has. */
  refusals?: number[];
  response: Shown;
  /** Set when the answer is not JSON. */
  responseType?: "text/plain" | "text/event-stream" | "application/x-tar" | "*/*";
  /** Answers an event stream unless the client asks for JSON. */
  streams?: boolean;
  /** What it streams: the data of each event, by the event's name. */
  events?: Record<string, z.ZodType>;
  /** May say in the header Warning that something about the request looks wrong. */
  warns?: boolean;
  /** A list with paging headers. */
  paged?: boolean;
  /** Takes the header Idempotency-Key. */
  idempotent?: boolean;
  /** Returns the answer of the operation, or a Response where the body is not JSON. */
  handle: (
    request: RouteRequest<
      { [K in keyof Params]: z.output<Params[K]> },
      { [K in keyof Query]: z.output<Query[K]> },
      z.output<Body>
    >,
  ) => Promise<Answer<z.output<Shown>> | Response>;
}

/** Declares a route. It exists so that the handler gets the types of its input. */
export function route<
  const M extends Method,
  const P extends string,
  // deno-lint-ignore ban-types
  Params extends Shape = {},
  // deno-lint-ignore ban-types
  Query extends Shape = {},
  Body extends z.ZodType = z.ZodUndefined,
  Shown extends z.ZodType = z.ZodType,
>(definition: Route<M, P, Params, Query, Body, Shown>): Route<M, P, Params, Query, Body, Shown> {
  return definition;
}

/** Any route, whatever its types. */
// deno-lint-ignore no-explicit-any
export type AnyRoute = Route<Method, string, any, any, any, any>;

type Input<S> =
  & { [K in keyof S as S[K] extends z.ZodOptional | z.ZodDefault ? never : K]: Wire<S[K]> }
  & {
    [K in keyof S as S[K] extends z.ZodOptional | z.ZodDefault ? K : never]?: Wire<S[K]>;
  };

// A query is sent as text; callers may give numbers and booleans.
type Wire<S> = S extends z.ZodType ? z.input<S> | number | boolean : never;

/** The routes as a type for clients: `"GET /api/workers/:id"` -> its query, body and response. */
export type ApiOf<R extends AnyRoute> = {
  [E in R as `${E["method"]} ${E["path"]}`]: {
    query: Input<NonNullable<E["query"]>>;
    body: E["body"] extends z.ZodType | undefined ? z.input<NonNullable<E["body"]>> : undefined;
    response: z.output<E["response"]>;
  };
};
