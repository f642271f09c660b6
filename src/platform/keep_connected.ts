import { type Backoff, backoffMs } from "../base/backoff.ts";
import { type Clock, sleep } from "../base/clock.ts";
import type { PlatformState } from "../domain/chat/platform.ts";
import type { Connection } from "./connection.ts";

/** What a failed session means. */
export interface Trouble {
  state: PlatformState;
  /** Until the next try; null for a pause that grows with every failure. */
  pauseMs: number | null;
}

interface Keeping {
  connection: Connection;
  clock: Clock;
  signal: AbortSignal;
  retry: Backoff;
  /** Connects and works until the connection is to be made anew. It says when it is well, so that the next pause is short again. */
  session: (wellAgain: () => void) => Promise<void>;
  troubleOf: (error: unknown) => Trouble;
}

/** Connects, and again whenever a session ends or fails, until the signal comes. Never throws. */
export async function keepConnected(keeping: Keeping): Promise<void> {
  const { connection, clock, signal, retry, session, troubleOf } = keeping;
  let failures = 0;
  while (!signal.aborted) {
    const beganAt = clock.monotonic();
    try {
      await session(() => failures = 0);
      failures = 0;
      // Whoever asks for the next connection all the time gets it after a pause.
      await sleep(clock, retry.firstMs - (clock.monotonic() - beganAt), signal);
    } catch (error) {
      if (signal.aborted) return;
      const { state, pauseMs } = troubleOf(error);
      connection.become(state, error instanceof Error ? error.message : String(error));
      // Not even a platform that asks for it is asked without a pause.
      await sleep(clock, Math.max(pauseMs ?? backoffMs(retry, ++failures), retry.firstMs), signal);
    }
  }
}
