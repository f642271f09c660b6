import { join } from "node:path";
import { type Clock, sleep } from "../base/clock.ts";
import { logger } from "../base/log.ts";

const log = logger("runner");

const PROBE_BYTES = 64 * 1024;
// Of a machine that had room a moment ago that is believed: many short runs must not write a file more each.
const BELIEVED_MS = 1_000;
const PAUSE_MS = 2_000;

/** Whether runs could write here. A machine that is full would fail every task that it gets (contract 18.7). */
export class Room {
  readonly #root: string;
  readonly #clock: Clock;
  #goodAt = -Infinity;

  constructor(root: string, clock: Clock) {
    this.#root = root;
    this.#clock = clock;
  }

  /** Something could not be written: the next look is a real one. */
  doubt(): void {
    this.#goodAt = -Infinity;
  }

  /** Resolves when runs could write here, or when `signal` aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    for (let told = false; !signal.aborted; told = true) {
      const problem = this.problem();
      if (problem === "") return;
      const root = this.#root;
      if (!told) log.error("Cannot write into {root}, so nothing is claimed: {problem}", { root, problem });
      await sleep(this.#clock, PAUSE_MS, signal);
    }
  }

  /** What keeps runs from writing below the directory, or "". */
  problem(): string {
    if (this.#clock.monotonic() - this.#goodAt < BELIEVED_MS) return "";
    const path = join(this.#root, "probe");
    try {
      Deno.writeFileSync(path, new Uint8Array(PROBE_BYTES), { mode: 0o600 });
      this.#goodAt = this.#clock.monotonic();
      return "";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      try {
        Deno.removeSync(path);
      } catch {
        // It could not even be made.
      }
    }
  }
}
