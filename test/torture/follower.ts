import { StreamClient } from "../harness/stream.ts";
import type { Victim } from "./victim.ts";
import { readRows } from "../harness/model/workload.ts";

/** A reader of one conversation's stream that often loses its connection and resumes with Last-Event-ID. */
export class Follower {
  connections = 0;
  readonly #victim: Victim;
  readonly #session: string;
  readonly #chance: () => number;
  readonly #seen: string[] = [];
  readonly #reading: Promise<void>;
  #lastId = "0";
  #done = false;

  constructor(victim: Victim, session: string, chance: () => number) {
    this.#victim = victim;
    this.#session = session;
    this.#chance = chance;
    this.#reading = this.#read();
  }

  get replies(): number {
    return this.#seen.length;
  }

  /** Reads until no new event arrives for a moment. */
  async finish(): Promise<void> {
    for (let before = -1; before !== this.#seen.length;) {
      before = this.#seen.length;
      await new Promise((resolve) => setTimeout(resolve, 1_500));
    }
    this.#done = true;
    await this.#reading;
  }

  /** Finds replies that a reconnecting client got twice or never [SSE-1, SSE-2]. */
  async faults(dataDir: string): Promise<string[]> {
    const rows = await readRows<{ id: string }>(
      dataDir,
      "select id from outbound_message where session_key = ? and status = 'sent'",
      [`local:${this.#session}`],
    );
    const seen = new Set(this.#seen);
    const missing = rows.filter((row) => !seen.has(row.id)).map((row) => row.id);
    return [
      ...(seen.size === this.#seen.length
        ? []
        : [`SSE-1: ${this.#seen.length - seen.size} replies came twice`]),
      ...(missing.length === 0
        ? []
        : [`SSE-2: ${missing.length} replies never came: ${missing.slice(0, 3).join(", ")}`]),
    ];
  }

  async #read(): Promise<void> {
    while (!this.#done) {
      const api = this.#victim.api;
      if (api === null) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        continue;
      }
      const stream = await api.stream(this.#session, { "last-event-id": this.#lastId }).catch(() => null);
      if (stream === null) continue;
      this.connections++;
      await this.#follow(stream);
    }
  }

  async #follow(stream: StreamClient): Promise<void> {
    const until = performance.now() + 100 + this.#chance() * 3_000;
    while (!this.#done && !stream.ended && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await stream.close();
    for (const event of stream.events) {
      if (event.event === "message") this.#seen.push(event.data.id);
      if (event.id !== undefined && event.id !== "") this.#lastId = event.id;
    }
  }
}
