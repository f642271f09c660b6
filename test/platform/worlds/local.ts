import type { Client } from "../../harness/service/client.ts";

/** People who write to the service directly, each in a separate session. */
export class LocalWorld {
  readonly #send: Client["send"];
  readonly #sessions: string[] = [];

  /** `send` answers status 0 while the service is down. */
  constructor(send: Client["send"]) {
    this.#send = send;
  }

  /** Sends a message in a new session until the service accepts it, over restarts. */
  async say(text: string, worker: string): Promise<void> {
    const key = crypto.randomUUID();
    const { id } = await this.#taken("POST /api/local/sessions", { worker_id: worker }, `${key}-s`);
    this.#sessions.push(id);
    await this.#taken(`POST /api/local/sessions/${id}/messages`, { content: text }, `${key}-m`);
  }

  // The key makes a retry the same request.
  async #taken(route: string, body: unknown, key: string) {
    for (;;) {
      const answer = await this.#send(route, body, { "idempotency-key": key });
      if (answer.status === 201 || answer.status === 202) return answer.body;
      if (answer.status !== 0 && answer.status < 500 && answer.status !== 401 && answer.status !== 429) {
        throw new Error(`${route}: ${answer.status}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Lists the replies of all sessions. */
  async answers(): Promise<string[]> {
    const said: string[] = [];
    for (const id of this.#sessions) {
      const { status, body } = await this.#send(`GET /api/local/sessions/${id}/messages`);
      if (status !== 200) throw new Error(`history: ${status}`);
      for (const { role, content } of body) if (role !== "user") said.push(content);
    }
    return said;
  }
}
