import type { Clock } from "../base/clock.ts";
import { logger } from "../base/log.ts";
import type { Database } from "../store/database.ts";
import { type SeenRunner, seeRunners } from "../store/runner.ts";

const log = logger("runner");

const WRITE_EVERY_MS = 1_000;

/** Notes that runners were heard of: all of one second in one commit, since each of a thousand says so every 25 s (contract 18.5). */
export class SeenRunners {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #seen = new Map<string, SeenRunner>();

  constructor({ db, clock }: { db: Database; clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
  }

  /** The process with this epoch was heard of now; that is stored within a second, if it runs as this runner still. */
  note(id: string, epoch: number): void {
    if (this.#seen.size === 0) this.#clock.after(WRITE_EVERY_MS, () => void this.#write());
    this.#seen.set(id, { id, epoch, at: this.#clock.now() });
  }

  async #write(): Promise<void> {
    const seen = [...this.#seen.values()];
    this.#seen.clear();
    try {
      await this.#db.write([seeRunners(seen)]);
    } catch (error) {
      log.warning("Cannot note which runners were heard of: {error}", { error });
    }
  }
}
