import { LRUCache } from "lru-cache";
import { logger } from "../../base/log.ts";
import { deliveryError, type FeishuClient } from "./client.ts";

const log = logger("feishu");
// Messages whose sign is remembered. What a service before this one gave stays.
const SIGNS_MAX = 1_000;
const EMOJI = "Typing";

/** A reaction stands for the sign that somebody types: given once to a message, and taken away when it is answered. */
export class Signs {
  readonly #client: FeishuClient;
  /** The reaction to each message; "" when it is gone. */
  readonly #given = new LRUCache<string, Promise<string>>({ max: SIGNS_MAX });

  constructor(client: FeishuClient) {
    this.#client = client;
  }

  /** Throws DeliveryError; it is not tried again then. */
  async give(message: string): Promise<void> {
    if (!/^om_/.test(message) || this.#given.has(message)) return;
    const body = { reaction_type: { emoji_type: EMOJI } };
    const giving = this.#client.call<{ reaction_id: string }>(
      "POST",
      `/im/v1/messages/${message}/reactions`,
      { body },
    );
    this.#given.set(message, giving.then(({ reaction_id }) => reaction_id, () => ""));
    try {
      await giving;
    } catch (error) {
      throw deliveryError(error);
    }
  }

  /** In the background: nothing depends on it. */
  take(message: string): void {
    const given = this.#given.get(message);
    if (given === undefined) return;
    this.#given.set(message, Promise.resolve(""));
    void given.then(async (reaction) => {
      if (reaction === "") return;
      await this.#client.call("DELETE", `/im/v1/messages/${message}/reactions/${reaction}`);
    }).catch((error) => log.info("A sign of Feishu stays: {error}", { error }));
  }
}
