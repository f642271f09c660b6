import { WAKEUP } from "../../base/wakeups.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { Call } from "./call.ts";
import type { Deps } from "./services.ts";

const POLL_MS = 1_000;

export interface WaitLimits {
  timeoutMs: number;
  signal: AbortSignal;
}

/** State of a wait: `over` after the timeout, `gone` when the client left or the service stops. */
type WaitState = "on" | "over" | "gone";

/**
 * Waits until `look` returns a result. Calls `look` first and after each journal event, and listens before the first
 * call so that no event is missed. `look` must return a result when the state is not `on`. Throws `unauthenticated`
 * when the caller's token ends.
 */
export async function waitFor<T>(
  { clock, wakeups, lifecycle }: Deps<"clock" | "wakeups" | "lifecycle">,
  call: Call,
  { timeoutMs, signal }: WaitLimits,
  look: (waiting: WaitState) => Promise<T | null>,
): Promise<T> {
  const wakeup = wakeups.listen(WAKEUP.journal);
  try {
    const until = clock.monotonic() + timeoutMs;
    const ended = AbortSignal.any([signal, lifecycle.stopping]);
    while (true) {
      const left = until - clock.monotonic();
      const seen = await look(ended.aborted ? "gone" : left <= 0 ? "over" : "on");
      if (seen !== null) return seen;
      await wakeup.next(clock, Math.min(left, POLL_MS), ended);
      if (await call.findAccessEnd() !== null) {
        throw new ServiceError(
          "unauthenticated",
          "Cannot wait any longer: the token is expired or revoked. Log in again.",
        );
      }
    }
  } finally {
    wakeup.close();
  }
}
