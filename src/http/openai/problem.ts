import { RunFailure } from "../../api/chat/completion.ts";
import type { CompletionError } from "../../domain/chat/completion.ts";
import type { ErrorCode, ServiceError } from "../../domain/call/error.ts";
import { type Problem, PROBLEMS, toProblem } from "../problem.ts";

const PREFIX = /^\/v1(\/|$)/;

/** Builds the response to a failed request: in OpenAI's form below /v1, else as a problem document. */
export async function answerError(error: unknown, path: string, requestId: string): Promise<Response> {
  if (!PREFIX.test(path)) return toProblem(error, requestId);
  if (error instanceof RunFailure) return buildResponse(buildRunFailure(error), 502, new Headers());
  const response = toProblem(error, requestId);
  const { code, detail, errors } = await response.json() as Problem;
  const { status, headers } = response;
  return buildResponse(buildError(code, detail, errors?.[0]?.path), status, headers);
}

function buildResponse(body: CompletionError, status: number, headers: Headers): Response {
  headers.set("content-type", "application/json");
  headers.set("cache-control", "no-store");
  // A repeated request would only get the same outcome. The client libraries read this header.
  if (status === 502) headers.set("x-should-retry", "false");
  return new Response(JSON.stringify(body), { status, headers });
}

/** Builds an error in OpenAI's form. */
export function toOpenAiError(error: ServiceError): CompletionError {
  if (error instanceof RunFailure) return buildRunFailure(error);
  return buildError(error.code, error.message, error.extras.errors?.[0]?.path);
}

function buildRunFailure({ message }: RunFailure): CompletionError {
  return { error: { message, type: "server_error", param: null, code: "run_failed" } };
}

function buildError(code: ErrorCode, message: string, field: string | undefined): CompletionError {
  const param = field === undefined || field === "" ? null : field;
  return { error: { message, type: chooseType(code), param, code: chooseCode(code, param) } };
}

const TYPES: Record<number, string> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

function chooseType(code: ErrorCode): string {
  const { status } = PROBLEMS[code];
  return TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
}

// The codes that client libraries know. Others are the service's own.
function chooseCode(code: ErrorCode, param: string | null): string {
  if (code === "unauthenticated") return "invalid_api_key";
  if (code === "not_found" && param === "model") return "model_not_found";
  if (code === "budget") return "insufficient_quota";
  return code === "rate_limited" ? "rate_limit_exceeded" : code;
}
