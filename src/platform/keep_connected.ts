import { type Backoff, backoffMs } from "../base/backoff.ts";
import { type Clock, sleep } from "../base/clock.ts";
import type { PlatformState } from "../domain/chat/platform.ts";
import type { Connection } from "./connection.ts";

/** State and pause after a failed session. */
export interface Trouble {
  state: PlatformState;
  /** Pause before the next try. null means a pause that grows with every failure. */
  pauseMs: number | null;
}

/** Connects and works until the platform needs a new connection. Calls `resetBackoff` when the platform works. */
export type Session = (resetBackoff: () => void) => Promise<void>;

interface ConnectionLoop {
  connection: Connection;
  clock: Clock;
  signal: AbortSignal;
  retry: Backoff;
  session: Session;
  classifyTrouble: (error: unknown) => Trouble;
}

/** Runs sessions one at a time until the signal aborts. Never throws. */
export async function keepConnected(loop: ConnectionLoop): Promise<void> {
  const { connection, clock, signal, retry, session, classifyTrouble } = loop;
  let failures = 0;
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      await session(() => failures = 0);
      failures = 0;
      // A platform can ask for a new connection all the time: each gets a pause.
      await sleep(clock, retry.firstMs - (clock.monotonic() - startedAt), signal);
    } catch (error) {
      if (signal.aborted) return;
      const { state, pauseMs } = classifyTrouble(error);
      connection.setState(state, error instanceof Error ? error.message : String(error));
      // A platform can ask for no pause: it gets the shortest one.
      await sleep(clock, Math.max(pauseMs ?? backoffMs(retry, ++failures), retry.firstMs), signal);
    }
  }
}
