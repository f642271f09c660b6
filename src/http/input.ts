import { z } from "zod";
import { type FieldError, invalid, ServiceError } from "../domain/call/error.ts";
import { findPrototypeKey } from "../domain/call/json.ts";
import type { Clock } from "../base/clock.ts";
import type { CountedBody } from "./server/body_budget.ts";
import { openIncomingBody } from "./server/incoming_body.ts";

/** Largest JSON body (contract 1.8). */
export const BODY_MAX_BYTES = 1024 * 1024;
/** Largest JSON body of routes below /api/auth/ and of all other routes that need no token. */
export const AUTH_BODY_MAX_BYTES = 16 * 1024;

/** Builds the strict schema of a query. Every route accepts `token` (contract 1.6). */
export function buildQuerySchema(shape: Record<string, z.ZodType>): z.ZodObject {
  return z.strictObject({ ...shape, token: z.union([z.string(), z.array(z.string())]).optional() });
}

const QUERY_PARAMETERS_MAX = 1_000;

/** Reads the query of a URL. A repeated parameter becomes a list. Throws `invalid_request` for too many parameters. */
export function readQuery(url: URL): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = Object.create(null);
  let count = 0;
  for (const [name, value] of url.searchParams) {
    if (++count > QUERY_PARAMETERS_MAX) {
      throw new ServiceError(
        "invalid_request",
        `Cannot read the query: it has more than ${QUERY_PARAMETERS_MAX} parameters`,
      );
    }
    const known = values[name];
    // A copy for each value would take quadratic time.
    if (Array.isArray(known)) known.push(value);
    else values[name] = known === undefined ? value : [known, value];
  }
  return { ...values };
}

type Place = "body" | "query";

/**
 * Parses `input`. Throws `invalid_request` with the faulty fields. For an unknown field, the error lists the known fields (contract 1.6).
 */
export function parseInput<T extends z.ZodType>(
  schema: T,
  input: unknown,
  place: Place = "body",
): z.output<T> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap((issue) => listFaults(issue, schema, place));
  const detail = errors.slice(0, 3).map(formatFault).join("; ");
  throw new ServiceError("invalid_request", detail, { errors: errors.slice(0, ERRORS_MAX) });
}

function formatFault({ path, message }: FieldError): string {
  if (path !== "") return `${path}: ${message}`;
  return message.startsWith("must be ") ? `the input ${message}` : message;
}

const SECRETS = /password|refresh_token|secret/i;
const ERRORS_MAX = 20;
const NAME_SHOWN_MAX = 100;

function listFaults(issue: z.core.$ZodIssue, schema: z.ZodType, place: Place): FieldError[] {
  const path = issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys") {
    // The first branch of a union has the best message.
    if (issue.code === "invalid_union") return listUnionFaults(issue, path);
    return [{ path, message: getMessage(issue) }];
  }
  const known = listKnownFields(schema, issue.path)?.filter((name) => name !== "token");
  const hint = known?.length === 0
    ? "; nothing is expected here"
    : known
    ? `; known: ${known.join(", ")}`
    : "";
  return issue.keys.slice(0, ERRORS_MAX).map((key) => ({
    path: (path === "" ? key : `${path}.${key}`).slice(0, NAME_SHOWN_MAX),
    message: place === "query" && SECRETS.test(key)
      ? "must be in the body and never in an address, because addresses are written to logs"
      : `unknown${hint}`,
  }));
}

function listUnionFaults(issue: z.core.$ZodIssueInvalidUnion, path: string): FieldError[] {
  const [branch] = issue.errors;
  const [first] = branch ?? [];
  return [{ path, message: getMessage(first ?? issue) }];
}

// About a name in a record, zod says only that it is invalid. The issue inside says why.
function getMessage(issue: z.core.$ZodIssue): string {
  return (issue.code === "invalid_key" ? issue.issues[0]?.message : undefined) ?? issue.message;
}

/** Lists the fields of the object at a path, or returns null if the schema does not say them. */
function listKnownFields(schema: z.ZodType, path: PropertyKey[]): string[] | null {
  let at = unwrap(schema);
  for (const step of path) {
    if (at instanceof z.ZodArray) at = unwrap(at.element);
    else if (at instanceof z.ZodRecord) at = unwrap(at.valueType);
    else at = at instanceof z.ZodObject ? unwrap(at.shape[String(step)]) : undefined;
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : null;
}

/** Removes what a schema says about null, absence and defaults. */
function unwrap(schema: unknown): unknown {
  const isWrapped = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault;
  return isWrapped ? unwrap(schema.unwrap()) : schema;
}

/**
 * Reads the JSON body of a request. Returns `{}` without a body (contract 1.3). Throws `payload_too_large`, `unsupported_media_type` and
 * `invalid_request`, also for a body that arrives too slowly.
 */
export async function readJson(
  request: Request,
  clock: Clock,
  maxBytes: number = BODY_MAX_BYTES,
  counted: CountedBody | null = null,
): Promise<unknown> {
  const bytes = await readBody(request, maxBytes, clock, counted);
  if (bytes.length === 0) return {};
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/(json|[\w.+-]+\+json)\s*(;|$)/i.test(type)) {
    throw new ServiceError(
      "unsupported_media_type",
      `Cannot read a body of type ${
        JSON.stringify(type.slice(0, NAME_SHOWN_MAX))
      }: it is not JSON. Send application/json.`,
    );
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not valid UTF-8");
  }
  const value = parseJsonBody(text);
  const path = findPrototypeKey(value, text)?.slice(-NAME_SHOWN_MAX);
  if (path !== undefined) throw invalid(path, "this name is not a key");
  return value;
}

function parseJsonBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not valid JSON");
  }
}

/**
 * Reads a body of up to `max` bytes. `counted` limits it together with other bodies. Throws `payload_too_large`, `unavailable`, or
 * `invalid_request` for a body that is incomplete or too slow.
 */
export async function readBody(
  request: Request,
  max: number,
  clock: Clock,
  counted: CountedBody | null = null,
): Promise<Uint8Array> {
  const tooLarge = () =>
    new ServiceError("payload_too_large", `Cannot accept the body: it is larger than ${max} bytes`);
  const body = openIncomingBody(request, clock);
  if (body === null) return new Uint8Array();
  const arrived = new ArrivedBytes(max, counted);
  if (counted !== null) counted.onRefused = (error) => body.stop(error);
  try {
    if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge();
    while (true) {
      const value = await body.read();
      if (value === null) return arrived.finish();
      if (arrived.size + value.length > max) throw tooLarge();
      arrived.append(value);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      throw new ServiceError("invalid_request", "Cannot read the body: it was cut off");
    }
    throw error;
  }
}

const CAPACITY_MIN_BYTES = 1024;

/** The bytes of a body so far, in one buffer. A list of one-byte pieces would take a hundred times the memory. */
class ArrivedBytes {
  readonly #max: number;
  readonly #counted: CountedBody | null;
  #bytes = new Uint8Array();
  size = 0;

  constructor(max: number, counted: CountedBody | null) {
    this.#max = max;
    this.#counted = counted;
  }

  append(piece: Uint8Array): void {
    const size = this.size + piece.length;
    if (size > this.#bytes.length) this.#grow(size);
    this.#bytes.set(piece, this.size);
    this.size = size;
  }

  #grow(size: number): void {
    const capacity = Math.min(this.#max, Math.max(size, 2 * this.#bytes.length, CAPACITY_MIN_BYTES));
    this.#counted?.take(capacity - this.#bytes.length);
    const grown = new Uint8Array(capacity);
    grown.set(this.#bytes.subarray(0, this.size));
    this.#bytes = grown;
  }

  finish(): Uint8Array {
    if (this.#counted !== null) this.#counted.complete = true;
    return this.#bytes.subarray(0, this.size);
  }
}
