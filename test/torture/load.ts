import { ServiceError } from "../../src/domain/call/error.ts";
import type { Client } from "../harness/service/client.ts";
import type { ClientLedger, Entry } from "./ledger.ts";
import type { Victim } from "./victim.ts";

// Each schedule fires every minute during the whole torture, so a larger number would become the only load.
const SCHEDULES_MAX = 12;
// The share of requests that are repeated under their key after a lost response.
const KEYED = 0.7;
const ATTEMPTS_MAX = 40;
// A task waits for some of the latest tasks, in chains of limited length.
const PARENTS_FROM = 12;
const PARENTS_MAX = 5;
const DEPTH_MAX = 20;

/** The value of the secret that the agents get. */
export const SECRET_CANARY = "canary-torture-secret-4711";

/** The load of a torture. */
export interface Plan {
  /** The labels of each worker; without one it runs on the service's own machine. */
  workers: readonly (readonly string[])[];
  /** The engines of the first workers; the others have the default. */
  engines?: readonly string[];
  /** The number of conversations, assigned to the workers in turn. */
  sessions: number;
  /** Instructions of agents; the number makes each text unique. */
  deeds: readonly [share: number, text: (n: number, dice: number) => string][];
  /** The lead of a countdown. The service requires five seconds; the rest is for a request that waits. */
  countdownMs: number;
}

/** Instructions for agents on any machine. */
export const DEEDS: Plan["deeds"] = [
  [0.45, (n) => `say hello ${n}`],
  [0.25, (n, dice) => `sleep ${(dice * 1.5).toFixed(2)} # ${n}`],
  [0.06, (n) => `exit 3 # ${n}`],
  [0.05, (n) => `setsid-escape ${n}`],
  [0.04, (n) => `fork-storm 8 # ${n}`],
  [0.05, (n) => `flood 200000 # ${n}`],
  [0.05, (n) => `bad-utf8 ${n}`],
  [0.05, (n) => `env-dump ${n}`],
];

/** The load of a service without runners. */
export const HERE: Plan = {
  workers: Array.from({ length: 6 }, () => []),
  sessions: 4,
  deeds: DEEDS,
  countdownMs: 15_000,
};

/** Clients of a server that is killed repeatedly: they send, lose the response, and send again. */
export class Load {
  readonly #victim: Victim;
  readonly #ledger: ClientLedger;
  readonly #chance: () => number;
  readonly #plan: Plan;
  readonly #going = new Set<Promise<void>>();
  workers: string[] = [];
  sessions: string[] = [];
  /** The number of tasks before each immediate task in its longest chain. */
  readonly #depths = new Map<string, number>();
  #count = 0;
  #schedules = 0;

  constructor(victim: Victim, ledger: ClientLedger, chance: () => number, plan: Plan = HERE) {
    this.#victim = victim;
    this.#plan = plan;
    this.#ledger = ledger;
    this.#chance = chance;
  }

  async prepare(): Promise<void> {
    const api = await this.#victim.reach();
    const { workers, engines = [], sessions } = this.#plan;
    await api.call("PUT /api/secrets/torture", { value: SECRET_CANARY });
    for (const [i, runs_on] of workers.entries()) {
      // The instruction env-dump prints the secret.
      const env = { TORTURE_KEY: "secret:torture" };
      const engine = engines[i] === undefined ? {} : { engine: engines[i] };
      const body = { name: `w${i}`, env, runs_on: [...runs_on], ...engine };
      this.workers.push((await api.call("POST /api/workers", body)).id);
    }
    for (let i = 0; i < sessions; i++) {
      const worker_id = this.workers[i % workers.length];
      this.sessions.push((await api.call("POST /api/local/sessions", { worker_id })).id);
    }
  }

  /** Lists the workers on runners with this label. */
  workersOn(label: string): string[] {
    return this.workers.filter((_, i) => this.#plan.workers[i]?.includes(label));
  }

  /** Sends another request, without waiting for its result. */
  begin(): void {
    const n = this.#count++;
    const dice = this.#chance();
    const keyed = this.#chance() < KEYED;
    const deed = this.#deed(n);
    const work = dice < 0.62
      ? this.#message(deed, keyed)
      : dice < 0.86
      ? this.#task(deed, keyed, this.#chance())
      : dice < 0.93
      ? this.#upload(n)
      : dice < 0.98
      ? this.#cancel()
      : this.#backup();
    const going = work.finally(() => this.#going.delete(going));
    this.#going.add(going);
  }

  /** Resolves when every request has its response. */
  async finished(): Promise<void> {
    while (this.#going.size > 0) await Promise.all([...this.#going]);
  }

  get sent(): number {
    return this.#count;
  }

  #deed(n: number): string {
    let dice = this.#chance();
    for (const [share, text] of this.#plan.deeds) {
      if (dice < share) return text(n, this.#chance());
      dice -= share;
    }
    return `say hello ${n}`;
  }

  #pick(ids: string[]): string {
    return ids[Math.floor(this.#chance() * ids.length)] ?? "";
  }

  async #message(content: string, keyed: boolean): Promise<void> {
    const session = this.#pick(this.sessions);
    const entry = this.#ledger.begin("message", content, keyed);
    await this.#send(
      entry,
      (api, headers) => api.send(`POST /api/local/sessions/${session}/messages`, { content }, headers),
    );
  }

  async #task(instruction: string, keyed: boolean, dice: number): Promise<void> {
    const scheduled = dice >= 0.95 && this.#schedules++ < SCHEDULES_MAX;
    const type = dice < 0.6 ? "immediate" : scheduled ? "scheduled" : "countdown";
    // A key belongs to one body, and the time of a countdown has to be in the future at each attempt.
    const entry = this.#ledger.begin("task", instruction, keyed && type !== "countdown");
    const parents = type === "immediate" ? this.#chooseParents() : [];
    const base = {
      ...{ message_id: "torture", worker_id: this.#pick(this.workers), instruction, type },
      ...(parents.length === 0
        ? {}
        : { after: parents, after_when: this.#chance() < 0.5 ? "success" : "end" }),
    };
    await this.#send(entry, (api, headers) => {
      const when = type === "countdown"
        ? { scheduled_at: Date.now() + this.#plan.countdownMs + Math.floor(dice * 2_000) }
        : type === "scheduled"
        ? { cron: "* * * * *" }
        : {};
      return api.send("POST /api/tasks", { ...base, ...when }, headers);
    });
    if (type !== "immediate" || entry.id === "") return;
    this.#depths.set(entry.id, Math.max(0, ...parents.map((id) => (this.#depths.get(id) ?? 0) + 1)));
  }

  // The chains stay far below the limit of the service.
  #chooseParents(): string[] {
    if (this.#chance() < 0.5) return [];
    const recent = [...this.#depths].slice(-PARENTS_FROM).filter(([, depth]) => depth < DEPTH_MAX);
    const ids = recent.map(([id]) => id).filter(() => this.#chance() < 3 / PARENTS_FROM);
    return ids.slice(0, PARENTS_MAX);
  }

  async #upload(n: number): Promise<void> {
    const session = this.#pick(this.sessions);
    const entry = this.#ledger.begin("upload", `upload ${n}`, false);
    await this.#send(entry, async (api) => {
      const form = new FormData();
      form.append("file", new Blob([new Uint8Array(200_000).fill(n)]), `f${n}.bin`);
      const body = await api.upload(`/api/local/sessions/${session}/media`, form);
      return { status: body.status ?? 200, body };
    });
  }

  async #cancel(): Promise<void> {
    const api = this.#victim.api;
    if (api === null) return;
    try {
      const [run] = (await api.send("GET /api/executions?status=running")).body;
      if (run !== undefined) await api.send(`POST /api/executions/${run.id}/cancel`, {});
    } catch (error) {
      if (!isLostAnswer(error)) throw error;
    }
  }

  async #backup(): Promise<void> {
    const api = this.#victim.api;
    if (api === null) return;
    try {
      const headers = { authorization: `Bearer ${api.token}`, "content-type": "application/json" };
      const response = await fetch(`${api.url}/api/system/backup`, { method: "POST", headers, body: "{}" });
      await response.bytes();
    } catch (error) {
      if (!isLostAnswer(error)) throw error;
    }
  }

  async #send(
    entry: Entry,
    request: (
      api: Client,
      headers: Record<string, string>,
    ) => Promise<{ status: number; body: Record<string, unknown> }>,
  ): Promise<void> {
    const headers: Record<string, string> = entry.keyed ? { "idempotency-key": entry.key } : {};
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const api = await this.#victim.reach();
      this.#ledger.sending(entry);
      try {
        const { status, body } = await request(api, headers);
        if (status === 503 || status === 429 || status === 401 || isLate(status, body)) {
          // The service refused the request and did nothing: it is stopping, the login is from the server
          // before, or the countdown is late.
          entry.sent--;
          await new Promise((resolve) => setTimeout(resolve, 100));
          continue;
        }
        const id = String(body.message_id ?? body.id ?? body.path ?? "");
        this.#ledger.answered(
          entry,
          status < 300 ? "accepted" : "refused",
          entry.kind === "task" ? String(body.id) : id,
        );
        if (status >= 300) {
          throw new ServiceError("internal", `${entry.key} was answered ${status}: ${JSON.stringify(body)}`);
        }
        return;
      } catch (error) {
        if (!isLostAnswer(error)) throw error;
        // Without a key a second attempt may create the message twice. One retry is enough to show that.
        if (!entry.keyed && entry.sent >= 2) return;
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    }
  }
}

/** Returns whether the connection broke, so that the effect is unknown. */
export function isLostAnswer(error: unknown): boolean {
  return error instanceof TypeError || error instanceof SyntaxError ||
    error instanceof Error &&
      /connection|reset|closed|error reading a body|unexpected end/i.test(error.message);
}

// Returns whether a countdown arrived so late that its lead is too short.
function isLate(status: number, { detail }: Record<string, unknown>): boolean {
  return status === 400 && String(detail).startsWith("scheduled_at: must be at least");
}
