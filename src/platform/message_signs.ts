import { LRUCache } from "lru-cache";
import { createLogger } from "../base/log.ts";

const log = createLogger("platform");
// A sign from before the start of the service stays.
const SIGNS_MAX = 1_000;

interface Options {
  platform: string;
  /** Adds a sign to a message. Returns the id of the sign, or "" when the message gets none. */
  add: (message: string) => Promise<string>;
  remove: (message: string, sign: string) => Promise<unknown>;
}

/** Shows a sign on a message until the reply, on platforms without a typing sign. */
export class MessageSigns {
  readonly #options: Options;
  /** Sign of each message, or "" if it has none or the sign was removed. */
  readonly #signs = new LRUCache<string, Promise<string>>({ max: SIGNS_MAX });

  constructor(options: Options) {
    this.#options = options;
  }

  /** Adds the sign once, without a retry. Throws as `add` does. */
  async add(message: string): Promise<void> {
    if (this.#signs.has(message)) return;
    const adding = this.#options.add(message);
    this.#signs.set(message, adding.catch(() => ""));
    await adding;
  }

  /** Removes the sign in the background. */
  remove(message: string): void {
    const { platform, remove } = this.#options;
    const sign = this.#signs.get(message);
    if (sign === undefined) return;
    this.#signs.set(message, Promise.resolve(""));
    void sign.then((id) => id === "" ? undefined : remove(message, id))
      .catch((error) => log.info("Cannot remove a sign of {platform}: {error}", { platform, error }));
  }
}
