import { FakeDingTalk } from "../fakes/dingtalk.ts";
import { CHAT, ChatWorld } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

/** DingTalk and its fake: people are <n>, groups cidgroup<n>, and a file is a separate message. */
export class DingTalkWorld extends ChatWorld<FakeDingTalk> {
  readonly kind = "dingtalk";
  readonly refusal = /authFailed|invalidClientIdOrSecret/;
  readonly can = new Set<Ability>([...CHAT, "keys at work", "files alone"]);

  constructor() {
    super(new FakeDingTalk());
  }

  get config() {
    const { clientId: client_id, secret: client_secret, url: base_url, template: card_template } = this.fake;
    return { kind: "dingtalk", client_id, client_secret, base_url, card_template };
  }

  say(text: string, options: MessageOptions = {}): Promise<string> {
    const { file } = options;
    if (file !== undefined) {
      const downloadCode = `code${this.createNumber()}`;
      this.fake.files.set(downloadCode, file.bytes);
      this.#message({ msgtype: "file", content: { downloadCode, fileName: file.name } }, {
        ...options,
        isMention: false,
      });
    }
    return Promise.resolve(this.#message({ msgtype: "text", text: { content: ` ${text}` } }, options));
  }

  #message(content: object, options: MessageOptions): string {
    const { from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const msgId = options.id ?? `msg${this.createNumber()}==`;
    this.fake.message({
      msgId,
      conversationType: isGroup ? "2" : "1",
      conversationId: isGroup ? groupOf(options.chat ?? "-5") : `cidOf${from}==`,
      senderId: isBot ? "bot" : `$:LWCP_v1:$${from}`,
      senderStaffId: from,
      senderNick: `User ${from}`,
      isInAtList: isMention,
      ...content,
    });
    return msgId;
  }

  sent(): SentMessage[] {
    return this.fake.sent.map(({ id, chat, text, params, deleted }) => ({
      id,
      chat: chat.replace(/^cidgroup0000(\d+)==$/, "-$1"),
      thread: "",
      text: text.replaceAll("  \n", "\n"),
      answers: "",
      buttons: [1, 2, 3, 4].map((number) => params[`b${number}`] ?? "").filter((label) => label !== ""),
      deleted,
    }));
  }

  signs(): number {
    return this.fake.emotions.length;
  }

  press({ id }: SentMessage, label: string, from = this.person): void {
    const { params } = this.fake.sent.find((one) => one.id === id);
    const number = [1, 2, 3, 4].find((one) => (params.old ?? params)[`b${one}`] === label) ?? 0;
    this.fake.press(id, from, number);
  }
}

function groupOf(chat: string): string {
  return `cidgroup${chat.replace("-", "0000")}==`;
}
