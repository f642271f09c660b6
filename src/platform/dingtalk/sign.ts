import { LRUCache } from "lru-cache";
import { logger } from "../../base/log.ts";
import { deliveryError, type DingTalkClient } from "./client.ts";

const log = logger("dingtalk");
// Messages whose conversation is known. What came before a start gets no sign.
const SIGNS_MAX = 1_000;
const NAME = "🤔Thinking";
/** An emotion with a text of its own. */
const EMOTION = {
  emotionType: 2,
  emotionName: NAME,
  textEmotion: { emotionId: "2659900", emotionName: NAME, text: NAME, backgroundId: "im_bg_1" },
};

interface Known {
  conversation: string;
  isGiven: boolean;
}

/** An emotion on a message stands for the sign that somebody types: given once, and taken away when it is answered. */
export class Signs {
  readonly #client: DingTalkClient;
  readonly #known = new LRUCache<string, Known>({ max: SIGNS_MAX });

  constructor(client: DingTalkClient) {
    this.#client = client;
  }

  /** A message came in this conversation. */
  heard(message: string, conversation: string): void {
    if (!this.#known.has(message)) this.#known.set(message, { conversation, isGiven: false });
  }

  /** Throws DeliveryError; it is not tried again then. */
  async give(message: string): Promise<void> {
    const known = this.#known.get(message);
    if (known === undefined || known.isGiven) return;
    known.isGiven = true;
    try {
      await this.#client.call("/v1.0/robot/emotion/reply", this.#body(message, known));
    } catch (error) {
      this.#known.delete(message);
      throw deliveryError(error);
    }
  }

  /** In the background: nothing depends on it. */
  take(message: string): void {
    const known = this.#known.get(message);
    if (known?.isGiven !== true) return;
    this.#known.delete(message);
    void this.#client.call("/v1.0/robot/emotion/recall", this.#body(message, known))
      .catch((error) => log.info("A sign of DingTalk stays: {error}", { error }));
  }

  #body(openMsgId: string, { conversation }: Known): object {
    return {
      robotCode: this.#client.robotCode,
      openMsgId,
      openConversationId: conversation,
      ...EMOTION,
    };
  }
}
