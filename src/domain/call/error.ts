/** The stable error codes (contract 1.7). */
export type ErrorCode =
  | "invalid_request"
  | "unauthenticated"
  | "invalid_credentials"
  | "forbidden"
  | "not_found"
  | "method_not_allowed"
  | "conflict"
  | "payload_too_large"
  | "unsupported_media_type"
  | "rate_limited"
  | "internal"
  | "unavailable"
  | "storage_full";

/** One field that was refused, by its path in the input ("" for the whole). */
export interface FieldError {
  path: string;
  message: string;
}

/** What may go with a ServiceError into the problem document. */
interface ErrorExtras {
  errors?: FieldError[];
  required_scope?: string;
  /** Seconds to wait before the next try; becomes the header Retry-After. */
  retry_after_s?: number;
  /** Methods of the path; becomes the header Allow. */
  allow?: string[];
  cause?: unknown;
}

/** The service could not do what was asked; the same in server and client. A run that failed is an outcome, not an error. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(detail, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = "ServiceError";
    this.code = code;
    this.extras = extras;
  }
}

/** A refusal that names one field (contract 1.7). */
export function invalid(path: string, message: string): ServiceError {
  return new ServiceError("invalid_request", path === "" ? message : `${path}: ${message}`, {
    errors: [{ path, message }],
  });
}

/** Nothing has this id, or the caller may not see it (contract 1.7). */
export function notFound(what: string, id: string): ServiceError {
  return new ServiceError("not_found", `Cannot find ${what} ${JSON.stringify(id)}: no such ${what}`);
}

/** This cannot be done in the present state. */
export function conflict(detail: string): ServiceError {
  return new ServiceError("conflict", detail);
}
