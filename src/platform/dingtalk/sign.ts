import { LRUCache } from "lru-cache";
import { createLogger } from "../../base/log.ts";
import type { DingTalkClient } from "./client.ts";

const log = createLogger("dingtalk");
// Messages whose conversation the process knows. A message from before the start gets no emotion.
const SIGNS_MAX = 1_000;
const NAME = "🤔Thinking";
const EMOTION = {
  emotionType: 2,
  emotionName: NAME,
  textEmotion: { emotionId: "2659900", emotionName: NAME, text: NAME, backgroundId: "im_bg_1" },
};

interface Sign {
  conversation: string;
  isGiven: boolean;
}

/** Shows an emotion on a message until the reply, since DingTalk has no typing sign. */
export class Signs {
  readonly #client: DingTalkClient;
  readonly #known = new LRUCache<string, Sign>({ max: SIGNS_MAX });

  constructor(client: DingTalkClient) {
    this.#client = client;
  }

  remember(message: string, conversation: string): void {
    if (!this.#known.has(message)) this.#known.set(message, { conversation, isGiven: false });
  }

  /** Adds the emotion once, without a retry. Throws as the client does. */
  async add(message: string): Promise<void> {
    const known = this.#known.get(message);
    if (known === undefined || known.isGiven) return;
    known.isGiven = true;
    try {
      await this.#client.call("/v1.0/robot/emotion/reply", this.#buildBody(message, known));
    } catch (error) {
      this.#known.delete(message);
      throw error;
    }
  }

  /** Removes the emotion in the background. */
  remove(message: string): void {
    const known = this.#known.get(message);
    if (known?.isGiven !== true) return;
    this.#known.delete(message);
    void this.#client.call("/v1.0/robot/emotion/recall", this.#buildBody(message, known))
      .catch((error) => log.info("Cannot remove an emotion of DingTalk: {error}", { error }));
  }

  #buildBody(openMsgId: string, { conversation }: Sign): object {
    return {
      robotCode: this.#client.robotCode,
      openMsgId,
      openConversationId: conversation,
      ...EMOTION,
    };
  }
}
