/** The stable error codes of contract 1. */
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
export interface ErrorExtras {
  errors?: FieldError[];
  required_scope?: string;
  /** Seconds until it is worth trying again; becomes the header Retry-After. */
  retry_after_s?: number;
  /** Methods of the path; becomes the header Allow. */
  allow?: string[];
  cause?: unknown;
}

/** "We could not do what was asked", the same in server and client. A failed run is an outcome and never this. */
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

/** Nothing has this id, or this caller may not see it. */
export function notFound(what: string, id: string): ServiceError {
  return new ServiceError("not_found", `Cannot find ${what} ${JSON.stringify(id)}: no such ${what}`);
}

/** The thing is in a state in which this cannot be done. */
export function conflict(detail: string): ServiceError {
  return new ServiceError("conflict", detail);
}
