import { waitUntil } from "../../harness/wait.ts";
import { FakeDiscord } from "../fakes/discord.ts";
import { ChatWorld, THREADED } from "./chat.ts";
import type { Ability, MessageOptions, SentMessage } from "./world.ts";

/** Discord and its fake: the direct chat of a person is the channel D<n>, a thread is a channel below another. */
export class DiscordWorld extends ChatWorld<FakeDiscord> {
  readonly kind = "discord";
  // Discord ignores a second message with the same nonce.
  override readonly copiesOfLost = 1;
  readonly can = new Set<Ability>([...THREADED, "answers"]);
  readonly refusal = /401: Unauthorized/;

  constructor() {
    super(new FakeDiscord());
  }

  get config() {
    return { kind: "discord", token: this.fake.token, base_url: `${this.fake.url}/api` };
  }

  protected override chatOf(person: string): string {
    return `D${person}`;
  }

  async say(text: string, options: MessageOptions = {}): Promise<string> {
    const { chat, from = this.person, isGroup = false, isMention = false, isBot = false } = options;
    const place = chat ?? (isGroup ? "-5" : this.chatOf(from));
    const channel = options.thread ?? place;
    if (options.thread !== undefined) this.fake.channels.set(channel, { type: 11, parent_id: place });
    this.fake.channels.set(place, { type: isGroup ? 0 : 1 });
    const id = options.id ?? this.fake.id();
    const message: Record<string, unknown> = {
      id,
      type: options.repliesTo === undefined ? 0 : 19,
      channel_id: channel,
      author: { id: from, username: `user${from}`, ...(isBot ? { bot: true } : {}) },
      content: isMention ? `<@${this.fake.bot}> ${text}` : text,
      mentions: isMention ? [{ id: this.fake.bot, username: "svc" }] : [],
      attachments: options.file === undefined ? [] : [this.#attach(options.file)],
      ...(isGroup ? { guild_id: "900", member: { nick: null } } : {}),
      ...(options.repliesTo === undefined ? {} : {
        message_reference: { message_id: options.repliesTo, channel_id: channel },
        referenced_message: { id: options.repliesTo, author: { id: this.fake.bot } },
      }),
    };
    // A bot without a first connection has no history.
    await waitUntil("the bot is connected", () => this.fake.gateway.sessions.length > 0);
    this.fake.gateway.event(options.isEdit === true ? "MESSAGE_UPDATE" : "MESSAGE_CREATE", message);
    const said = this.fake.said.get(channel) ?? [];
    if (!said.some((one) => one.id === id)) this.fake.said.set(channel, [...said, message]);
    return id;
  }

  #attach({ name, bytes }: { name: string; bytes: Uint8Array<ArrayBuffer> }) {
    const id = `a${this.createNumber()}`;
    this.fake.files.set(id, bytes);
    const url = `${this.fake.url}/attachments/${id}?ex=1&hm=2`;
    // Discord keeps ASCII only, and adds a title when that changes the name.
    const [, stem = name, extension = ""] = /^(.*)(\.\w+)$/u.exec(name) ?? [];
    const plain = stem.replace(/[^\w.-]+/g, "");
    const isPlain = plain === stem;
    const filename = isPlain ? name : `${plain || "c953b519a8c28c42"}${extension}`;
    return {
      id,
      filename,
      ...(isPlain ? {} : { title: stem }),
      size: bytes.length,
      content_type: "text/plain",
      url,
    };
  }

  sent(): SentMessage[] {
    return this.fake.sent.map((one) => {
      const parent = this.fake.channels.get(one.channel_id)?.parent_id;
      return {
        id: one.id,
        chat: parent ?? one.channel_id.replace(/^D/, ""),
        thread: parent === undefined ? "" : one.channel_id,
        text: one.content || `[file ${one.file}]`,
        answers: one.message_reference?.message_id ?? "",
        buttons: (one.components ?? []).flatMap(({ components }: { components: { label: string }[] }) =>
          components.map(({ label }) => label)
        ),
        deleted: one.deleted,
      };
    });
  }

  signs(): number {
    return this.fake.typing.length;
  }

  press({ id }: SentMessage, label: string, from = this.person): void {
    const message = this.fake.sent.find((one) => one.id === id);
    const components = message.components.length > 0 ? message.components : message.old;
    const button = components
      .flatMap((row: { components: unknown[] }) => row.components)
      .find((one: { label: string }) => one.label === label);
    const user = { id: from, username: `user${from}` };
    const isGroup = this.fake.channels.get(message.channel_id)?.type !== 1;
    this.fake.press({
      id: this.fake.id(),
      token: `interaction-${this.createNumber()}`,
      type: 3,
      channel_id: message.channel_id,
      ...(isGroup ? { guild_id: "900", member: { nick: null, user } } : { user }),
      message: { id, content: message.content, components },
      data: { component_type: 2, custom_id: button.custom_id },
    }, id);
  }

  /** Uses a registered command with its options. */
  pick(name: string, text: string, { from = this.person, isGroup = false } = {}): void {
    const command = this.fake.commands.find((one) => one.name === name);
    const options = (command.options ?? []).map((one: { name: string; type: number }) => ({
      ...one,
      value: text,
    }));
    const user = { id: from, username: `user${from}` };
    const channel = isGroup ? "-5" : this.chatOf(from);
    this.fake.channels.set(channel, { type: isGroup ? 0 : 1 });
    this.fake.press({
      id: this.fake.id(),
      token: `interaction-${this.createNumber()}`,
      type: 2,
      channel_id: channel,
      ...(isGroup ? { guild_id: "900", member: { nick: null, user } } : { user }),
      data: { id: command.id, name, type: 1, ...(options.length === 0 ? {} : { options }) },
    });
  }

  override faults(): string[] {
    return [...this.fake.faults, ...this.fake.gateway.faults];
  }
}
