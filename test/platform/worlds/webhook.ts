import { Webhook } from "standardwebhooks";
import { Receiver } from "../fakes/receiver.ts";
import type { Ability, Sent, Told, World } from "./world.ts";

const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

/** A program that sends webhooks, and the address that takes the replies. */
export class WebhookWorld implements World {
  readonly kind = "webhook";
  readonly person = "main";
  readonly direct = "main";
  // The same id: whoever receives it knows that it is the same.
  readonly copiesOfLost = 2;
  readonly can: ReadonlySet<Ability> = new Set<Ability>(["limits", "answers"]);
  readonly #receiver = new Receiver(SECRET);
  /** Where the service is; set when it has started. */
  url = "";
  #next = 1;

  get config() {
    return { kind: "webhook", secret: SECRET, reply_url: this.#receiver.url, allow_private: true };
  }

  async say(text: string, { id = `m${this.#next++}`, chat = this.person }: Told = {}): Promise<string> {
    const body = JSON.stringify({ id, text, conversation: chat });
    const now = new Date();
    for (;;) {
      const response = await fetch(`${this.url}/hooks/there`, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          "webhook-id": id,
          "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
          "webhook-signature": new Webhook(SECRET).sign(id, now, body),
        },
      });
      await response.body?.cancel();
      if (response.ok) return id;
    }
  }

  sent(): Sent[] {
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
