import { type Clock, sleep } from "../../base/clock.ts";
import type { Connection } from "../connection.ts";
import { openWire, type Wire } from "../websocket.ts";

// Servers and their channels, messages there and in direct chats, and what they say.
const INTENTS = 1 | 512 | 4_096 | 32_768;
const READY_MS = 30_000;
const OP = { event: 0, beat: 1, identify: 2, resume: 6, reconnect: 7, invalid: 9, hello: 10, beaten: 11 };
/** What no further try makes better: somebody has to do something first. */
const REFUSED: Record<number, string> = {
  4004: "the token does not count",
  4010: "Discord refused the shard",
  4011: "the bot is in too many servers for one connection",
  4012: "Discord does not speak this version any more",
  4013: "Discord does not know the intents",
  4014:
    "the intent Message Content is off: switch it on in the developer portal, Bot, Privileged Gateway Intents",
};
/** After these a new session has to begin. */
const FORGOTTEN = [4007, 4009];

/** The gateway does not take us: no key, or no right. */
export class GatewayRefused extends Error {}

/** What a connection goes on with where the one before has ended. */
export interface Session {
  id: string;
  url: string;
  /** The last event that was stored: what came after it comes again. */
  seq: number;
}

interface Event {
  name: string;
  data: unknown;
}

interface Listening {
  url: string;
  token: string;
  /** null: a new one begins. */
  session: Session | null;
  clock: Clock;
  connection: Connection;
  /** Stores what an event says; the next one waits for it. */
  handle: (event: Event, signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
}

interface Ready {
  session_id: string;
  resume_gateway_url: string;
}

interface Frame {
  op: number;
  d: unknown;
  s: number;
  t: string;
}

/** Listens on one socket until it ends, and answers what the next one goes on with. Throws GatewayRefused. */
export async function listen(parts: Listening): Promise<{ session: Session | null; why: string }> {
  const wire = await openWire(`${parts.url.replace(/\/?$/, "/")}?v=10&encoding=json`, READY_MS);
  const socket = new Socket(wire, parts);
  return await socket.ended();
}

/** One socket: who we are, the beat, and events one after the other. */
class Socket {
  readonly #wire: Wire;
  readonly #parts: Listening;
  readonly #over = new AbortController();
  readonly #end = Promise.withResolvers<string>();
  #session: Session | null;
  /** The last event that came, stored or not. */
  #heard: number | null;
  #isBeaten = true;
  #isReady = false;
  #handling = Promise.resolve();

  constructor(wire: Wire, parts: Listening) {
    this.#wire = wire;
    this.#parts = parts;
    this.#session = parts.session;
    this.#heard = parts.session?.seq ?? null;
  }

  async ended(): Promise<{ session: Session | null; why: string }> {
    const { clock, signal } = this.#parts;
    const wire = this.#wire;
    const stop = () => this.#end.resolve("");
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    wire.on("message", (data) => {
      try {
        this.#take(JSON.parse(data.toString()));
      } catch {
        this.#end.resolve("Discord sent something else than its protocol");
      }
    });
    wire.on("close", (code) => this.#closed(code));
    wire.on("error", (error) => this.#end.resolve(error.message));
    void sleep(clock, READY_MS, this.#over.signal).then(() => {
      if (!this.#isReady) this.#end.resolve(`Discord was not ready within ${READY_MS / 1000} s`);
    });
    try {
      const why = await this.#end.promise;
      return { session: this.#session, why };
    } finally {
      // Without a good-bye, after which the session would be over.
      wire.terminate();
      this.#over.abort();
      signal.removeEventListener("abort", stop);
      // What came is stored before the next socket asks for what came after it.
      await this.#handling.catch(() => {});
    }
  }

  #take({ op, d, s, t }: Frame): void {
    if (op === OP.hello) this.#greet((d as { heartbeat_interval: number }).heartbeat_interval);
    else if (op === OP.beat) this.#beat();
    else if (op === OP.beaten) this.#isBeaten = true;
    else if (op === OP.reconnect) this.#end.resolve("Discord asked for a new connection");
    else if (op === OP.invalid) {
      if (d !== true) this.#forget();
      this.#end.resolve("Discord has ended the session");
    } else if (op === OP.event) this.#event({ name: t, data: d }, s);
  }

  #greet(intervalMs: number): void {
    const { token, session } = this.#parts;
    void this.#keepBeating(intervalMs);
    if (session !== null) {
      this.#send(OP.resume, { token, session_id: session.id, seq: session.seq });
      return;
    }
    const properties = { os: "linux", browser: "svc", device: "svc" };
    this.#send(OP.identify, { token, intents: INTENTS, properties });
  }

  async #keepBeating(intervalMs: number): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#over;
    // Not all bots of the world at once.
    await sleep(clock, intervalMs * Math.random(), signal);
    while (!signal.aborted) {
      // A connection that is silent for longer is dead, however open it looks (contract 10.4).
      if (!this.#isBeaten) return this.#end.resolve("Discord was silent");
      this.#isBeaten = false;
      this.#beat();
      await sleep(clock, intervalMs, signal);
    }
  }

  #beat(): void {
    this.#send(OP.beat, this.#heard);
  }

  #event(event: Event, seq: number): void {
    const { connection, handle } = this.#parts;
    this.#heard = seq;
    const isReady = event.name === "READY";
    if (isReady || event.name === "RESUMED") {
      this.#isReady = true;
      connection.become("connected");
    } else connection.seen();
    this.#handling = this.#handling.then(async () => {
      await handle(event, this.#over.signal);
      if (isReady) this.#session = sessionOf(event.data as Ready, seq);
      else if (this.#session !== null) this.#session = { ...this.#session, seq };
    });
    this.#handling.catch((error) => this.#end.resolve(String(error)));
  }

  #closed(code: number): void {
    const refusal = REFUSED[code];
    if (refusal !== undefined) return this.#end.reject(new GatewayRefused(refusal));
    if (FORGOTTEN.includes(code)) this.#forget();
    this.#end.resolve(`Discord closed the connection (${code})`);
  }

  #forget(): void {
    this.#session = null;
  }

  #send(op: number, d: unknown): void {
    try {
      this.#wire.send(JSON.stringify({ op, d }));
    } catch {
      // It is closing, and says so itself.
    }
  }
}

function sessionOf({ session_id, resume_gateway_url }: Ready, seq: number): Session {
  return { id: session_id, url: resume_gateway_url, seq };
}
