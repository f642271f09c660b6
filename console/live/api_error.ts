// A proxy returns 502 or 504 while the service restarts.
const TEMPORARY: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** A request that the service refused, or that did not reach it (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly { path: string; message: string }[];

  constructor(status: number, code: string, detail: string, errors: ApiError["errors"] = []) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }

  /** Whether the same request may succeed soon. */
  get temporary(): boolean {
    return TEMPORARY.has(this.status);
  }
}

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "unreachable", "The service does not respond. The page retries automatically.");
}
