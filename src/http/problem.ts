import { type ErrorCode, type FieldError, ServiceError } from "../domain/call/error.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("http");

/** Status and title of each code (contract 1.7). */
export const PROBLEMS: Record<ErrorCode, { status: number; title: string }> = {
  invalid_request: { status: 400, title: "Invalid request" },
  unauthenticated: { status: 401, title: "Not authenticated" },
  invalid_credentials: { status: 401, title: "Wrong username or password" },
  forbidden: { status: 403, title: "Not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  conflict: { status: 409, title: "Conflict" },
  payload_too_large: { status: 413, title: "Payload too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  rate_limited: { status: 429, title: "Too many requests" },
  budget: { status: 429, title: "Budget used up" },
  upgrade_required: { status: 426, title: "Upgrade not supported" },
  internal: { status: 500, title: "Internal error" },
  bad_gateway: { status: 502, title: "No answer from upstream" },
  unavailable: { status: 503, title: "Unavailable" },
  storage_full: { status: 507, title: "Storage full" },
};

/** The body of error responses (RFC 9457, contract 1.7). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  request_id: string;
  errors?: FieldError[];
  required_scope?: string;
}

/**
 * Builds the response to a failed request. An unexpected error becomes `internal` with a fixed text. Its cause is logged with the request id
 * and never sent to the client (reliability SEC-6).
 */
export function toProblem(error: unknown, requestId: string = crypto.randomUUID()): Response {
  const fault = error instanceof ServiceError ? error : new ServiceError(
    "internal",
    `Cannot complete the request: internal error. The log of the service has details under the request id ${requestId}.`,
    { cause: error },
  );
  const { status, title } = PROBLEMS[fault.code];
  // Starting and stopping are not errors. Every request would log one.
  const intended = fault.code === "unavailable" && fault.cause === undefined;
  if (status >= 500 && !intended) {
    log.error("Request {request_id} failed: {error}", { request_id: requestId, error: fault.cause ?? fault });
  }
  const problem: Problem = {
    type: `about:blank#${fault.code}`,
    title,
    status,
    detail: fault.message,
    code: fault.code,
    request_id: requestId,
    ...(fault.extras.errors === undefined ? {} : { errors: fault.extras.errors }),
    ...(fault.extras.required_scope === undefined ? {} : { required_scope: fault.extras.required_scope }),
  };
  const headers = new Headers({
    "content-type": "application/problem+json",
    "cache-control": "no-store",
    "x-request-id": requestId,
  });
  if (fault.extras.retry_after_s !== undefined) {
    headers.set("retry-after", String(fault.extras.retry_after_s));
  }
  if (fault.extras.allow !== undefined) headers.set("allow", fault.extras.allow.join(", "));
  if (status === 401) headers.set("www-authenticate", "Bearer");
  // The server does not read the rest of the body.
  if (fault.code === "payload_too_large") headers.set("connection", "close");
  return new Response(JSON.stringify(problem), { status, headers });
}
