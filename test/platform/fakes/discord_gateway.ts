// deno-lint-ignore no-explicit-any
type Json = any;

const CLOSE = {
  opcode: 4001,
  decode: 4002,
  notIdentified: 4003,
  token: 4004,
  identified: 4005,
  sequence: 4007,
  silent: 4009,
  intents: 4014,
};
const MESSAGE_CONTENT = 32_768;

/** Events of a session, which another socket can resume. */
interface Session {
  id: string;
  events: { t: string; d: Json; s: number }[];
  socket: WebSocket | null;
}

/** A fake of Discord's gateway: hello, identify, resume, heartbeats, and sessions that keep missed events. */
export class FakeGateway {
  readonly faults: string[] = [];
  readonly sessions: Session[] = [];
  readonly asked = { identify: 0, resume: 0, beats: 0 };
  /** Heartbeat interval. */
  beatMs = 41_250;
  /** Channels in the GUILD_CREATE of a new session. */
  channels: Json[] = [{ id: "-5", type: 0 }];
  /** Sends no GUILD_CREATE. */
  isServerGone = false;
  /** Address for resumed sessions. "": this server. */
  elsewhere = "";
  /** Acknowledges no heartbeats. */
  isDeaf = false;
  isWithoutContent = false;
  readonly #token: () => string;
  readonly #url: () => string;
  readonly #bot: Json;
  readonly #sockets = new Set<WebSocket>();
  readonly #watches = new Set<ReturnType<typeof setInterval>>();

  constructor(bot: Json, token: () => string, url: () => string) {
    this.#bot = bot;
    this.#token = token;
    this.#url = url;
  }

  get listening(): number {
    return this.sessions.filter(({ socket }) => socket !== null).length;
  }

  /** Sends an event to every session. A session without a socket gets it when it resumes. */
  event(t: string, d: Json): void {
    for (const session of this.sessions) this.#tell(session, t, d);
  }

  /** Sends events in another order than their numbers. */
  outOfOrder(events: [t: string, d: Json][]): void {
    for (const session of this.sessions) {
      const told = events.map(([t, d]) => ({ t, d, s: 0 }));
      for (const event of told) event.s = session.events.push(event);
      for (const event of told.reverse()) session.socket?.send(JSON.stringify({ op: 0, ...event }));
    }
  }

  /** Closes the socket with a code, drops it, or asks for a new connection. */
  end(how: number | "reconnect" | "invalid" | "resumable"): void {
    for (const { socket } of this.sessions) {
      if (how === "reconnect") socket?.send(JSON.stringify({ op: 7, d: null, s: null, t: null }));
      else if (typeof how === "string") {
        socket?.send(JSON.stringify({ op: 9, d: how === "resumable", s: null, t: null }));
      } else socket?.close(how);
    }
    if (how === "invalid") this.forget();
  }

  /** Ends all sessions. */
  forget(): void {
    this.sessions.length = 0;
  }

  upgrade(request: Request, url: URL): Response {
    if (url.searchParams.get("v") !== "10" || url.searchParams.get("encoding") !== "json") {
      this.faults.push(`gateway asked for with ${url.search}`);
    }
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    let beatAt = performance.now();
    let session: Session | null = null;
    const watch = setInterval(() => {
      if (performance.now() - beatAt > this.beatMs * 2.5) socket.close(CLOSE.silent);
    }, Math.max(20, this.beatMs / 4));
    this.#watches.add(watch);
    const gone = () => {
      clearInterval(watch);
      this.#sockets.delete(socket);
      if (session?.socket === socket) session.socket = null;
    };
    socket.onopen = () => {
      this.#sockets.add(socket);
      socket.send(
        JSON.stringify({ op: 10, d: { heartbeat_interval: this.beatMs, _trace: [] }, s: null, t: null }),
      );
    };
    socket.onclose = gone;
    socket.onerror = gone;
    socket.onmessage = ({ data }) => {
      const frame = read(data);
      if (frame === null) return socket.close(CLOSE.decode);
      if (frame.op === 1) {
        beatAt = performance.now();
        return this.#beat(socket, session, frame.d);
      }
      if (frame.op !== 2 && frame.op !== 6) {
        return socket.close(session === null ? CLOSE.notIdentified : CLOSE.opcode);
      }
      if (session !== null) return socket.close(CLOSE.identified);
      session = frame.op === 2 ? this.#identify(socket, frame.d) : this.#resume(socket, frame.d);
    };
    return response;
  }

  #beat(socket: WebSocket, session: Session | null, seq: unknown): void {
    this.asked.beats++;
    const isKnown = seq === null || typeof seq === "number" && seq <= (session?.events.length ?? 0);
    if (!isKnown) this.faults.push(`a beat with ${seq}`);
    if (!this.isDeaf) socket.send(JSON.stringify({ op: 11, d: null, s: null, t: null }));
  }

  #identify(socket: WebSocket, d: Json): Session | null {
    this.asked.identify++;
    const { token, intents, properties } = d ?? {};
    for (const name of ["os", "browser", "device"]) {
      if (typeof properties?.[name] !== "string") this.faults.push(`identify without ${name}`);
    }
    if (typeof intents !== "number") this.faults.push("identify without intents");
    if (token !== this.#token()) return refuse(socket, CLOSE.token);
    if (this.isWithoutContent && (intents & MESSAGE_CONTENT) !== 0) return refuse(socket, CLOSE.intents);
    const session: Session = { id: `s${this.asked.identify}`, events: [], socket };
    this.sessions.push(session);
    this.#tell(session, "READY", {
      v: 10,
      user: this.#bot,
      guilds: [{ id: "900", unavailable: true }],
      session_id: session.id,
      resume_gateway_url: this.elsewhere || this.#url(),
      application: { id: this.#bot.id, flags: 0 },
    });
    if (this.isServerGone) return session;
    const roles = [{ id: "77", tags: { bot_id: this.#bot.id } }];
    this.#tell(session, "GUILD_CREATE", {
      id: "900",
      roles,
      channels: this.channels,
      threads: [{ id: "44", type: 11, parent_id: "-5" }],
    });
    return session;
  }

  #resume(socket: WebSocket, d: Json): Session | null {
    this.asked.resume++;
    const { token, session_id, seq } = d ?? {};
    if (token !== this.#token()) return refuse(socket, CLOSE.token);
    const session = this.sessions.find(({ id }) => id === session_id);
    if (session === undefined) {
      socket.send(JSON.stringify({ op: 9, d: false, s: null, t: null }));
      return null;
    }
    if (typeof seq !== "number" || seq > session.events.length) return refuse(socket, CLOSE.sequence);
    session.socket?.close();
    session.socket = socket;
    for (const event of session.events.slice(seq)) socket.send(JSON.stringify({ op: 0, ...event }));
    this.#tell(session, "RESUMED", {});
    return session;
  }

  #tell(session: Session, t: string, d: Json): void {
    const event = { t, d, s: 0 };
    event.s = session.events.push(event);
    if (session.socket?.readyState === WebSocket.OPEN) {
      session.socket.send(JSON.stringify({ op: 0, ...event }));
    }
  }

  close(): void {
    for (const watch of this.#watches) clearInterval(watch);
    for (const socket of this.#sockets) socket.close();
  }
}

function refuse(socket: WebSocket, code: number): null {
  socket.close(code);
  return null;
}

function read(data: string): Json {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
