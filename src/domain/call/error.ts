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
  | "budget"
  | "upgrade_required"
  | "internal"
  | "bad_gateway"
  | "unavailable"
  | "storage_full";

/** A rejected field and its path in the input ("" for the whole). */
export interface FieldError {
  path: string;
  message: string;
}

/** Extra fields of the problem document. */
interface ErrorExtras {
  errors?: FieldError[];
  required_scope?: string;
  /** Seconds to wait before retrying. The response has them in the header Retry-After. */
  retry_after_s?: number;
  /** Methods of the path. The response has them in the header Allow. */
  allow?: string[];
  cause?: unknown;
}

/** The service could not do its own job; the same in server and client. A failed run is an outcome, not an error. */
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

/** Creates an `invalid_request` error that names one field. */
export function invalid(path: string, message: string): ServiceError {
  return new ServiceError("invalid_request", path === "" ? message : `${path}: ${message}`, {
    errors: [{ path, message }],
  });
}

/** Creates a `not_found` error, also for objects that the caller cannot see (contract 1.7). */
export function notFound(what: string, id: string): ServiceError {
  return new ServiceError("not_found", `Cannot find ${what} ${JSON.stringify(id)}: no such ${what}`);
}

export function conflict(detail: string): ServiceError {
  return new ServiceError("conflict", detail);
}
