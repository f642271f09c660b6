import { waitUntil } from "../../harness/wait.ts";
import { FakeWeCom } from "../fakes/wecom.ts";
import { CHAT, ChatWorld } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

/** WeCom and its fake: the id of a direct chat is the person, and in groups a bot gets only mentions. */
export class WeComWorld extends ChatWorld<FakeWeCom> {
  readonly kind = "wecom";
  // WeCom has no threads, edits or replies to a message.
  readonly can = new Set<Ability>([...CHAT, "files alone", "no signs", "lost meanwhile"]);
  readonly refusal = /853000/;

  constructor() {
    super(new FakeWeCom());
  }

  get config() {
    const { botId: bot_id, secret, url: base_url } = this.fake;
    return { kind: "wecom", bot_id, secret, base_url };
  }

  async say(text: string, options: MessageOptions = {}): Promise<string> {
    const { from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const msgid = options.id ?? `msg${this.createNumber()}`;
    // WeCom sends a bot no messages of other bots, and none without a mention.
    if (isBot || isGroup && !isMention) return msgid;
    const place = {
      msgid,
      from: { userid: from },
      ...(isGroup ? { chatid: options.chat ?? "-5", chattype: "group" } : { chattype: "single" }),
    };
    await waitUntil("the bot is connected", () => this.fake.socket !== null);
    if (options.file !== undefined) {
      const file = this.fake.file(options.file.name, options.file.bytes);
      this.fake.push("aibot_msg_callback", { ...place, msgid: `${msgid}f`, msgtype: "file", file });
    }
    const content = isGroup ? `@svc ${text}` : text;
    this.fake.push("aibot_msg_callback", { ...place, msgtype: "text", text: { content } });
    return msgid;
  }

  sent(): SentMessage[] {
    return this.fake.sent.map(({ id, chatid, text, buttons, deleted }) => ({
      id,
      chat: chatid,
      thread: "",
      text,
      answers: "",
      buttons: buttons.map((button: { text: string }) => button.text),
      deleted,
    }));
  }

  signs(): number {
    return 0;
  }

  press({ id, chat }: SentMessage, label: string, from = this.person): void {
    const message = this.fake.sent.find((one) => one.id === id);
    const { key } = [...message.buttons, ...message.old].find((one) => one.text === label);
    this.fake.push("aibot_event_callback", {
      msgid: `event${this.createNumber()}`,
      msgtype: "event",
      from: { userid: from },
      ...(chat.startsWith("-") ? { chatid: chat, chattype: "group" } : { chattype: "single" }),
      event: {
        eventtype: "template_card_event",
        template_card_event: { card_type: "button_interaction", event_key: key, task_id: id },
      },
    });
  }
}
