import { LRUCache } from "lru-cache";
import { createLogger } from "../../base/log.ts";
import type { FeishuClient } from "./client.ts";

const log = createLogger("feishu");
// Messages whose reaction the process knows. A reaction from before the start stays.
const SIGNS_MAX = 1_000;
const EMOJI = "Typing";

/** Shows a reaction on a message until the reply, since Feishu has no typing sign. */
export class Signs {
  readonly #client: FeishuClient;
  /** Reaction on each message. "": removed. */
  readonly #given = new LRUCache<string, Promise<string>>({ max: SIGNS_MAX });

  constructor(client: FeishuClient) {
    this.#client = client;
  }

  /** Adds the reaction once, without a retry. Throws as the client does. */
  async add(message: string): Promise<void> {
    if (!/^om_/.test(message) || this.#given.has(message)) return;
    const body = { reaction_type: { emoji_type: EMOJI } };
    const giving = this.#client.call<{ reaction_id: string }>(
      "POST",
      `/im/v1/messages/${message}/reactions`,
      { body },
    );
    this.#given.set(message, giving.then(({ reaction_id }) => reaction_id, () => ""));
    await giving;
  }

  /** Removes the reaction in the background. */
  remove(message: string): void {
    const given = this.#given.get(message);
    if (given === undefined) return;
    this.#given.set(message, Promise.resolve(""));
    void given.then(async (reaction) => {
      if (reaction === "") return;
      await this.#client.call("DELETE", `/im/v1/messages/${message}/reactions/${reaction}`);
    }).catch((error) => log.info("Cannot remove a reaction of Feishu: {error}", { error }));
  }
}
