import { LRUCache } from "lru-cache";
import { type Clock, sleep } from "../../base/clock.ts";
import { VERSION } from "../../base/version.ts";
import { answerText } from "../answer.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { answered, objectOf } from "../request.ts";
import { askedMs } from "../retry_after.ts";

const BASE_URL = "https://discord.com/api";
const HOSTS = /^(cdn\.discordapp\.com|media\.discordapp\.net|([\w-]+\.)*discord\.gg)$/;
const API_VERSION = "/v10";
const TIMEOUT_MS = 15_000;
const UPLOAD_MS = 120_000;
// Discord says how long; this is for when it does not.
const LIMITED_MS = 30_000;
/** A limit that ends sooner is waited for; what takes longer is said, and the outbox waits. */
const LIMIT_WAIT_MS = 5_000;
// Routes whose limit is known.
const ROUTES_MAX = 2_000;
const EVERYTHING = "*";

/** What Discord answered instead of a result. */
export class DiscordError extends Error {
  readonly status: number;
  /** Discord's own number; 0 when there is none. */
  readonly code: number;
  readonly retryAfterMs: number | null;
  readonly isGlobal: boolean;

  constructor(
    status: number,
    message: string,
    { code = 0, retryAfterMs = null, isGlobal = false }:
      & { retryAfterMs?: number | null }
      & Partial<Pick<DiscordError, "code" | "isGlobal">> = {},
  ) {
    super(message);
    this.name = "DiscordError";
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.isGlobal = isGlobal;
  }
}

interface CallOptions {
  body?: object;
  file?: PartFile;
  signal?: AbortSignal;
  /** Without our key: an interaction has one of its own, in its path. */
  isOpen?: boolean;
}

/** Calls of one bot. No error says a path, since the key of an interaction is in one. */
export class DiscordClient {
  readonly #base: string;
  readonly #token: string;
  readonly #clock: Clock;
  /** When a route that has been used up takes something again, in monotonic ms. */
  readonly #limits = new LRUCache<string, number>({ max: ROUTES_MAX });

  constructor(token: string, baseUrl: string, clock: Clock) {
    this.#base = (baseUrl || BASE_URL).replace(/\/$/, "") + API_VERSION;
    this.#token = token;
    this.#clock = clock;
  }

  /** Waits for a limit that ends soon. Throws DiscordError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const route = `${method} ${path.replace(/\?.*$/, "").replace(/(messages|interactions)\/[^/]+/, "$1")}`;
    await this.#free(route, options.signal);
    const limit = AbortSignal.timeout(options.file === undefined ? TIMEOUT_MS : UPLOAD_MS);
    const { status, headers, text } = await answered("Discord", async () => {
      const response = await fetch(`${this.#base}${path}`, {
        method,
        ...bodyOf(options, this.#token),
        redirect: "manual",
        signal: options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]),
      });
      return { status: response.status, headers: response.headers, text: await answerText(response) };
    });
    this.#learn(route, headers);
    const answer = objectOf<Answer>(text);
    if (status >= 200 && status < 300) return answer as T;
    throw this.#refused(route, status, headers, answer);
  }

  /** The bytes of a file of a message, as they come. Throws as call() does. */
  async download(address: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    if (!this.isDiscord(address)) throw new DiscordError(400, "Discord named an address outside of Discord");
    // The address has its own signature; our key goes nowhere.
    const response = await answered("Discord", () => fetch(address, { redirect: "manual", signal }));
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    throw new DiscordError(response.status, `Discord answered ${response.status}`);
  }

  /** Whether an address that Discord named is one of its own: the key goes to no other (contract 11). */
  isDiscord(address: string): boolean {
    const url = URL.parse(address);
    if (url?.host === new URL(this.#base).host) return true;
    return url !== null && ["https:", "wss:"].includes(url.protocol) && HOSTS.test(url.hostname);
  }

  async #free(route: string, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const until = Math.max(this.#limits.get(route) ?? 0, this.#limits.get(EVERYTHING) ?? 0);
      const waitMs = until - this.#clock.monotonic();
      if (waitMs <= 0 || signal?.aborted === true) return;
      if (waitMs > LIMIT_WAIT_MS) {
        const isGlobal = this.#limits.get(EVERYTHING) === until;
        throw new DiscordError(429, "Discord takes no more for now", { retryAfterMs: waitMs, isGlobal });
      }
      await sleep(this.#clock, waitMs, signal);
    }
  }

  #learn(route: string, headers: Headers): void {
    const ms = askedMs(headers.get("x-ratelimit-reset-after"));
    if (headers.get("x-ratelimit-remaining") !== "0" || ms === null) return;
    this.#limits.set(route, this.#clock.monotonic() + ms);
  }

  #refused(route: string, status: number, headers: Headers, answer: Partial<Answer>): DiscordError {
    const words = `Discord answered ${status}${answer.message === undefined ? "" : `: ${answer.message}`}`;
    if (status !== 429) return new DiscordError(status, words, { code: answer.code ?? 0 });
    const retryAfterMs = askedMs(answer.retry_after ?? headers.get("retry-after")) ?? LIMITED_MS;
    const isGlobal = answer.global === true || headers.get("x-ratelimit-global") === "true";
    this.#limits.set(isGlobal ? EVERYTHING : route, this.#clock.monotonic() + retryAfterMs);
    return new DiscordError(status, words, { retryAfterMs, isGlobal });
  }
}

function bodyOf({ body, file, isOpen = false }: CallOptions, token: string): RequestInit {
  const headers: Record<string, string> = {
    "user-agent": `DiscordBot (https://discord.com, ${VERSION})`,
    ...(isOpen ? {} : { authorization: `Bot ${token}` }),
  };
  if (body === undefined) return { headers };
  if (file === undefined) {
    return { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  const form = new FormData();
  form.set("payload_json", JSON.stringify(body));
  form.set("files[0]", new File([file.bytes], file.name, { type: file.mime }));
  return { headers, body: form };
}

interface Answer {
  message: string;
  code: number;
  retry_after: number;
  global: boolean;
}

/** What a failed call means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof DiscordError)) return new DeliveryError("refused", String(error));
  const { status, message, retryAfterMs, isGlobal } = error;
  if (status === 429) {
    return new DeliveryError("limited", message, { scope: isGlobal ? "platform" : "chat", retryAfterMs });
  }
  return new DeliveryError(status === 401 || status >= 500 ? "unreachable" : "refused", message);
}
