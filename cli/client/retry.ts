import type { Api } from "../../src/http/app.ts";
import { type Backoff, backoffMs } from "../../src/base/backoff.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { isConnectionLost, NotConnected } from "./connection.ts";
import { EXIT, Exit } from "../terminal/exit.ts";

/** Every create request. The server runs it once per idempotency key (contract 1.9). */
export const CREATE_ENDPOINTS = [
  "POST /api/workers",
  "POST /api/departments",
  "POST /api/tasks",
  "POST /api/tasks/batch",
  "POST /api/tasks/:id/run",
  "POST /api/tasks/:id/retry",
  "POST /api/executions/:id/retry",
  "POST /api/executions/:id/steer",
  "POST /api/messages",
  "POST /api/messages/resend",
  "POST /api/messages/:id/resend",
  "POST /api/approvals",
  "POST /api/questions",
  "POST /api/local/sessions",
  "POST /api/local/sessions/:id/media",
  "POST /api/local/sessions/:id/messages",
  "POST /api/users",
  "POST /api/tokens",
  "POST /api/push/devices",
  "POST /api/webhooks",
  "POST /api/budgets",
  "POST /api/runners",
] as const satisfies (keyof Api)[];

const RETRY_DELAY: Backoff = { firstMs: 100, lastMs: 2_000 };

export function createsSomething(endpoint: string): boolean {
  return CREATE_ENDPOINTS.some((one) => one === endpoint);
}

/** The time limit and the abort signal of retries. */
interface RetryLimits {
  signal: AbortSignal;
  withinMs: number;
}

/**
 * Calls `send`, and once more after a lost response, when the server is ready again. Then throws Exit 1 instead of 6,
 * since a caller that retries would create twice (contract 8.6).
 */
export async function sendTwice<T>(
  send: () => Promise<T>,
  bounds: RetryLimits & { isReady: () => Promise<boolean> },
): Promise<T> {
  try {
    return await send();
  } catch (error) {
    // An error from the server, or a request that was never sent, needs no second attempt.
    if (
      !isConnectionLost(error) || error instanceof NotConnected || isAnswer(error) || bounds.signal.aborted
    ) {
      throw error;
    }
  }
  try {
    await retryRead(bounds.isReady, bounds);
    return await send();
  } catch (error) {
    if (!isConnectionLost(error) || bounds.signal.aborted) throw error;
    const words = error instanceof Error ? error.message : String(error);
    throw new Exit(
      EXIT.unexpected,
      `The response was lost, so the request may have succeeded. Check before retrying. ${words}`,
    );
  }
}

function isAnswer(error: unknown): boolean {
  return error instanceof ServiceError && "json" in error;
}

/**
 * Repeats `work`, which only reads, while the connection is lost, for up to `withinMs`. Then throws its last error,
 * with `nextStep` appended (contract 8.6).
 */
export async function retryRead<T>(
  work: () => Promise<T>,
  bounds: RetryLimits & { nextStep?: string },
): Promise<T> {
  const until = performance.now() + bounds.withinMs;
  for (let attempt = 1;; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionLost(error) || bounds.signal.aborted) throw error;
      const left = until - performance.now();
      if (left <= 0) throw bounds.nextStep === undefined ? error : withNextStep(error, bounds.nextStep);
      await waitBeforeRetry(Math.min(backoffMs(RETRY_DELAY, attempt), left), bounds.signal);
    }
  }
}

function withNextStep(error: unknown, nextStep: string): ServiceError {
  const words = error instanceof ServiceError ? error.message : "The connection to the service was lost.";
  return new ServiceError("unavailable", `${words} ${nextStep}`, { cause: error });
}

function waitBeforeRetry(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
