import { type Clock, sleep } from "../../base/clock.ts";
import { ConnectionRefused } from "../connected_platform.ts";
import type { Connection } from "../connection.ts";
import { openWire, type Wire } from "../websocket.ts";

// Discord sends the bot servers with their channels, messages in channels and direct chats, and the texts of messages.
const INTENTS = 1 | 512 | 4_096 | 32_768;
const READY_MS = 30_000;
const OP = {
  event: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalid: 9,
  hello: 10,
  acknowledge: 11,
};
/** Close codes after which a person must act. */
const REFUSED: Record<number, string> = {
  4004: "the token is not valid",
  4010: "Discord refused the shard",
  4011: "the bot is in too many servers for one connection",
  4012: "Discord no longer supports this version",
  4013: "Discord does not know the intents",
  4014:
    "the intent Message Content is off: switch it on in the developer portal, Bot, Privileged Gateway Intents",
};
/** Close codes that end the session. */
const FORGOTTEN = [4007, 4009];

/** State with which the next connection resumes. */
export interface Session {
  id: string;
  url: string;
  /** Number of the last stored event. Discord sends later events again. */
  seq: number;
}

export interface Event {
  name: string;
  data: unknown;
}

interface GatewayOptions {
  url: string;
  token: string;
  /** null: a new session. */
  session: Session | null;
  clock: Clock;
  connection: Connection;
  /** Stores an event. The next event waits for it. */
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

/** Listens on one socket until it ends. Returns the session for the next one. Throws ConnectionRefused. */
export async function listen(parts: GatewayOptions): Promise<{ session: Session | null; why: string }> {
  const wire = await openWire(`${parts.url.replace(/\/?$/, "/")}?v=10&encoding=json`, READY_MS);
  const socket = new Socket(wire, parts);
  return await socket.waitForEnd();
}

class Socket {
  readonly #wire: Wire;
  readonly #parts: GatewayOptions;
  readonly #ended = new AbortController();
  readonly #end = Promise.withResolvers<string>();
  #session: Session | null;
  /** Number of the last received event. */
  #lastSeq: number | null;
  #isAcknowledged = true;
  #isReady = false;
  #handling = Promise.resolve();

  constructor(wire: Wire, parts: GatewayOptions) {
    this.#wire = wire;
    this.#parts = parts;
    this.#session = parts.session;
    this.#lastSeq = parts.session?.seq ?? null;
  }

  async waitForEnd(): Promise<{ session: Session | null; why: string }> {
    const { clock, signal } = this.#parts;
    const wire = this.#wire;
    const stop = () => this.#end.resolve("");
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    wire.on("message", (data) => {
      try {
        this.#handleFrame(JSON.parse(data.toString()));
      } catch {
        this.#end.resolve("Discord sent an invalid frame");
      }
    });
    wire.on("close", (code) => this.#handleClose(code));
    wire.on("error", (error) => this.#end.resolve(error.message));
    void sleep(clock, READY_MS, this.#ended.signal).then(() => {
      if (!this.#isReady) this.#end.resolve(`Discord was not ready within ${READY_MS / 1000} s`);
    });
    try {
      const why = await this.#end.promise;
      return { session: this.#session, why };
    } finally {
      // A clean close would end the session.
      wire.terminate();
      this.#ended.abort();
      signal.removeEventListener("abort", stop);
      // The events must be stored before the next socket asks for later events.
      await this.#handling.catch(() => {});
    }
  }

  #handleFrame({ op, d, s, t }: Frame): void {
    if (op === OP.hello) this.#identify((d as { heartbeat_interval: number }).heartbeat_interval);
    else if (op === OP.heartbeat) this.#send(OP.heartbeat, this.#lastSeq);
    else if (op === OP.acknowledge) this.#isAcknowledged = true;
    else if (op === OP.reconnect) this.#end.resolve("Discord asked for a new connection");
    else if (op === OP.invalid) {
      if (d !== true) this.#session = null;
      this.#end.resolve("Discord has ended the session");
    } else if (op === OP.event) this.#handleEvent({ name: t, data: d }, s);
  }

  #identify(intervalMs: number): void {
    const { token, session } = this.#parts;
    void this.#sendHeartbeats(intervalMs);
    if (session !== null) {
      this.#send(OP.resume, { token, session_id: session.id, seq: session.seq });
      return;
    }
    const properties = { os: "linux", browser: "svc", device: "svc" };
    this.#send(OP.identify, { token, intents: INTENTS, properties });
  }

  async #sendHeartbeats(intervalMs: number): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#ended;
    // Discord wants the first heartbeat at a random time.
    await sleep(clock, intervalMs * Math.random(), signal);
    while (!signal.aborted) {
      // Without an acknowledgement the connection is dead, even if the socket is open.
      if (!this.#isAcknowledged) return this.#end.resolve("Discord was silent");
      this.#isAcknowledged = false;
      this.#send(OP.heartbeat, this.#lastSeq);
      await sleep(clock, intervalMs, signal);
    }
  }

  #handleEvent(event: Event, seq: number): void {
    const { connection, handle } = this.#parts;
    this.#lastSeq = seq;
    const isReady = event.name === "READY";
    if (isReady || event.name === "RESUMED") {
      this.#isReady = true;
      connection.setState("connected");
    } else connection.recordEvent();
    this.#handling = this.#handling.then(async () => {
      await handle(event, this.#ended.signal);
      if (isReady) {
        const { session_id: id, resume_gateway_url: url } = event.data as Ready;
        this.#session = { id, url, seq };
      } else if (this.#session !== null) this.#session = { ...this.#session, seq };
    });
    this.#handling.catch((error) => this.#end.resolve(String(error)));
  }

  #handleClose(code: number): void {
    const refusal = REFUSED[code];
    if (refusal !== undefined) return this.#end.reject(new ConnectionRefused(refusal));
    if (FORGOTTEN.includes(code)) this.#session = null;
    this.#end.resolve(`Discord closed the connection (${code})`);
  }

  #send(op: number, d: unknown): void {
    try {
      this.#wire.send(JSON.stringify({ op, d }));
    } catch {
      // The socket is closing and will emit close.
    }
  }
}
