import { Receiver, SECRET, sign } from "../fakes/receiver.ts";
import type { Ability, MessageOptions, SentMessage, World } from "./world.ts";

/** A program that sends webhooks, and a receiver of the replies. */
export class WebhookWorld implements World {
  readonly kind = "webhook";
  readonly person = "main";
  readonly direct = "main";
  // The receiver recognizes a repeated reply by its id.
  readonly copiesOfLost = 2;
  readonly can: ReadonlySet<Ability> = new Set<Ability>(["limits", "answers", "lost meanwhile"]);
  readonly refusal = /never/;
  readonly #receiver = new Receiver();
  /** Address of the service, known after its start. */
  url = "";
  /** Name in the configuration. */
  readonly name: string;
  #next = 1;

  constructor(name = "there") {
    this.name = name;
  }

  get config() {
    return { kind: "webhook", secret: SECRET, reply_url: this.#receiver.url, allow_private: true };
  }

  async say(
    text: string,
    { id = `m${this.#next++}`, chat = this.person }: MessageOptions = {},
  ): Promise<string> {
    const body = JSON.stringify({ id, text, conversation: chat });
    for (;;) {
      const response = await fetch(`${this.url}/hooks/${this.name}`, {
        method: "POST",
        body,
        headers: sign(body, id),
      }).catch(() => null);
      await response?.body?.cancel().catch(() => {});
      if (response?.ok) return id;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  sent(): SentMessage[] {
    return this.#receiver.got.map(({ id, body: { data } }) => ({
      id,
      chat: data.conversation,
      thread: "",
      text: data.text,
      answers: data.answers,
      buttons: [],
      deleted: false,
    }));
  }

  uploads(): never[] {
    return [];
  }

  signs(): number {
    return 0;
  }

  press(): void {}

  revoke(): void {}

  loseAnswer(): void {
    this.#receiver.modes.push("lost");
  }

  limit(_chat: string, isOn: boolean): void {
    this.#receiver.otherwise = isOn ? { status: 429, headers: { "retry-after": "1" } } : "ok";
  }

  faults(): string[] {
    return this.#receiver.faults;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }
}
