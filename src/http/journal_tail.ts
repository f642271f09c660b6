import type { Clock } from "../clock.ts";
import { logger } from "../log.ts";
import type { Database } from "../store/database.ts";
import { journalRange, listEvents } from "../store/journal.ts";
import { BELL, type Bells } from "../wake.ts";
import { conversationBell } from "./stream.ts";

const log = logger("http");
const POLL_MS = 1_000;
const ROWS_PER_READ = 1_000;

/** Reads what is new in the journal once, for all streams, and rings the bells of the conversations it concerns. */
export class JournalTail {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #bells: Bells;
  readonly #stopped = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: { db: Database; clock: Clock; bells: Bells }) {
    this.#db = options.db;
    this.#clock = options.clock;
    this.#bells = options.bells;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const bell = this.#bells.listen(BELL.journal);
    let after: number | null = null;
    while (!signal.aborted) {
      try {
        after ??= (await journalRange(this.#db)).last;
        after = await this.#announce(after);
      } catch (error) {
        log.warning("Cannot read the journal, trying again: {error}", { error });
      }
      await bell.next(this.#clock, POLL_MS, signal);
    }
    bell.close();
  }

  async #announce(after: number): Promise<number> {
    while (true) {
      const rows = await listEvents(this.#db, after, ROWS_PER_READ);
      const keys = new Set(rows.map((row) => row.session_key));
      for (const key of keys) if (key !== "") this.#bells.ring(conversationBell(key));
      after = rows.at(-1)?.seq ?? after;
      if (rows.length < ROWS_PER_READ) return after;
    }
  }
}
