import { waitUntilQuiet } from "../harness/service/client.ts";
import type { Victim } from "./victim.ts";

const CONNECTIONS = 1_000;
const LOGINS_AT_ONCE = 8;
const MESSAGE_BYTES = 170_000;
const MENTION_BYTES = 250_000;
const WATCH_EVERY_MS = 200;
const FOREIGN = { "x-forwarded-for": "203.0.113.66" };

/** The server's limit of open files in a hostile torture. */
export const HOSTILE_FILES_MAX = 1_024;

/**
 * A hostile client next to others [BYT-3]: texts of control characters and reads of all of them, idle
 * connections, logins with random names, storms of mentions. A probe requests /livez meanwhile, and the
 * service's memory is measured.
 */
export class Hostile {
  readonly #victim: Victim;
  readonly #times: number[] = [];
  readonly #work: Promise<void>[];
  readonly #probe = new Worker(new URL("./probe.ts", import.meta.url), { type: "module" });
  readonly counts = { messages: 0, reads: 0, mentions: 0, logins: 0, connections: 0 };
  #memory = 0;
  #session = "";
  #ended = false;

  private constructor(victim: Victim) {
    this.#victim = victim;
    this.#work = [];
  }

  /** Starts the client; the victim has to be ready. */
  static async begin(victim: Victim): Promise<Hostile> {
    const hostile = new Hostile(victim);
    const api = await victim.reach();
    const worker = await api.call("POST /api/workers", { name: "hostile", engine: "echo" });
    for (let i = 0; i < 200; i++) await api.call("POST /api/workers", { name: `idle-${i}`, engine: "echo" });
    hostile.#session = (await api.call("POST /api/local/sessions", { worker_id: worker.id })).id;
    hostile.#work.push(
      hostile.#repeat(500, () => hostile.#write()),
      hostile.#repeat(300, () => hostile.#read()),
      hostile.#repeat(1_000, () => hostile.#mention()),
      hostile.#repeat(1_000, () => hostile.#connect()),
      ...Array.from({ length: LOGINS_AT_ONCE }, () => hostile.#repeat(5, () => hostile.#login())),
      hostile.#repeat(WATCH_EVERY_MS, () => hostile.#watch()),
    );
    hostile.#probe.onmessage = ({ data }: MessageEvent<number>) => hostile.#times.push(data);
    return hostile;
  }

  /** Stops the client; resolves when the service has no work left from it. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#probe.terminate();
    await Promise.all(this.#work);
    await waitUntilQuiet(await this.#victim.reach(), 180_000);
  }

  /** Formats the effects on the other clients. */
  report(): string[] {
    const times = this.#times.sort((a, b) => a - b);
    const at = (share: number) => (times[Math.floor((times.length - 1) * share)] ?? NaN).toFixed(0);
    const { messages, reads, mentions, logins, connections } = this.counts;
    return [
      `hostile          ${messages} large messages, ${reads} reads of all, ${mentions} storms of mentions, ${logins} logins, ` +
      `${connections} idle connections`,
      `/livez           ${times.length} times, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`,
      `memory           ${(this.#memory / 1e6).toFixed(0)} MB at most`,
    ];
  }

  // A kill may fail `work` at any moment; then the next server gets it.
  async #repeat(pauseMs: number, work: () => Promise<void>): Promise<void> {
    while (!this.#ended) {
      await work().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #write(): Promise<void> {
    const api = await this.#victim.reach();
    const content = "\u0001".repeat(MESSAGE_BYTES);
    await api.send(`POST /api/local/sessions/${this.#session}/messages`, { content });
    this.counts.messages++;
  }

  async #read(): Promise<void> {
    const api = await this.#victim.reach();
    const paths = [
      `/api/local/sessions/${this.#session}/messages`,
      "/api/messages/inbound?page_size=100",
      "/api/messages/outbound?page_size=100",
      "/api/executions?page_size=100",
    ];
    const path = paths[this.counts.reads % paths.length] ?? "";
    const response = await fetch(api.url + path, { headers: { authorization: `Bearer ${api.token}` } });
    await response.arrayBuffer();
    this.counts.reads++;
  }

  async #mention(): Promise<void> {
    const api = await this.#victim.reach();
    const content = ["@ ", "@idle- ", "@hostile "][this.counts.mentions % 3] ?? "";
    const storm = content.repeat(Math.floor(MENTION_BYTES / content.length));
    await api.send(`POST /api/local/sessions/${this.#session}/messages`, { content: storm });
    this.counts.mentions++;
  }

  async #connect(): Promise<void> {
    const { hostname, port } = new URL((await this.#victim.reach()).url);
    const open: Deno.TcpConn[] = [];
    for (let i = 0; i < CONNECTIONS && !this.#ended; i++) {
      const connection = await Deno.connect({ hostname, port: Number(port) }).catch(() => null);
      if (connection === null) break;
      open.push(connection);
      this.counts.connections++;
    }
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    for (const connection of open) connection.close();
  }

  async #login(): Promise<void> {
    const { url } = await this.#victim.reach();
    const response = await fetch(`${url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json", ...FOREIGN },
      body: JSON.stringify({ username: crypto.randomUUID(), password: "guess" }),
    });
    await response.body?.cancel();
    this.counts.logins++;
  }

  // The probe requests only while a server runs, so it measures only the response time.
  async #watch(): Promise<void> {
    this.#probe.postMessage(this.#victim.api?.url ?? null);
    this.#memory = Math.max(this.#memory, await this.#victim.memory());
  }
}
