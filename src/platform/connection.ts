import type { Clock } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";
import type { PlatformState } from "../domain/chat/platform.ts";
import type { Health } from "./platform.ts";

const log = createLogger("platform");

export class Connection {
  readonly #name: string;
  readonly #clock: Clock;
  #health: Health;

  constructor(name: string, clock: Clock, state: PlatformState = "connecting") {
    this.#name = name;
    this.#clock = clock;
    this.#health = { state, since: clock.now(), last_event_at: null, error: "" };
  }

  get health(): Health {
    return this.#health;
  }

  /** Stores the time of an event of the platform. */
  recordEvent(): void {
    this.#health = { ...this.#health, last_event_at: this.#clock.now() };
  }

  /** Stores the state, and logs a new one. */
  setState(state: PlatformState, error = ""): void {
    if (this.#health.state === state && this.#health.error === error) return;
    const isNew = this.#health.state !== state;
    const since = isNew ? this.#clock.now() : this.#health.since;
    this.#health = { ...this.#health, state, since, error };
    if (!isNew) return;
    const words = { platform: this.#name, state, error };
    if (error === "") log.info("Platform {platform} is {state}", words);
    else log.warning("Platform {platform} is {state}: {error}", words);
  }
}
