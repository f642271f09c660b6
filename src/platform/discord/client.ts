import { LRUCache } from "lru-cache";
import { type Clock, sleep } from "../../base/clock.ts";
import { VERSION } from "../../base/version.ts";
import type { PartFile } from "../part_file.ts";
import { type DeliveryError, PlatformError } from "../platform.ts";
import { requireAnswer, sendRequest, TIMEOUT_MS, UPLOAD_TIMEOUT_MS } from "../request.ts";
import { parsePauseSeconds } from "../retry_after.ts";

const BASE_URL = "https://discord.com/api";
const HOSTS = /^(cdn\.discordapp\.com|media\.discordapp\.net|([\w-]+\.)*discord\.gg)$/;
const API_VERSION = "/v10";
// Pause after a limit without a time.
const LIMITED_MS = 30_000;
/** The client waits for a limit that ends sooner. For a longer one it throws, and the outbox waits. */
const LIMIT_WAIT_MS = 5_000;
const ROUTES_MAX = 2_000;
const EVERYTHING = "*";

export class DiscordError extends PlatformError {
  readonly status: number;
  /** Error code of Discord. 0: none. */
  readonly code: number;
  readonly isGlobal: boolean;

  constructor(
    status: number,
    message: string,
    { code = 0, retryAfterMs = null as number | null, isGlobal = false } = {},
  ) {
    super(message, retryAfterMs);
    this.status = status;
    this.code = code;
    this.isGlobal = isGlobal;
  }

  get isKeyRefused(): boolean {
    return this.status === 401;
  }

  get why(): DeliveryError["why"] {
    if (this.status === 429) return "limited";
    return this.status === 401 || this.status >= 500 ? "unreachable" : "refused";
  }

  override get scope(): DeliveryError["scope"] {
    return this.isGlobal ? "platform" : "chat";
  }
}

interface CallOptions {
  body?: object;
  file?: PartFile;
  signal?: AbortSignal;
  /** Sends no key: the path of an interaction contains another one. */
  isOpen?: boolean;
}

/** Calls Discord for one bot. No error contains a path, since the path of an interaction has a key. */
export class DiscordClient {
  readonly #base: string;
  readonly #token: string;
  readonly #clock: Clock;
  /** End of the limit of each route, in monotonic ms. */
  readonly #limits = new LRUCache<string, number>({ max: ROUTES_MAX });

  constructor(token: string, baseUrl: string, clock: Clock) {
    this.#base = (baseUrl || BASE_URL).replace(/\/$/, "") + API_VERSION;
    this.#token = token;
    this.#clock = clock;
  }

  /** Waits for a limit that ends soon. Throws DiscordError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const route = `${method} ${path.replace(/\?.*$/, "").replace(/(messages|interactions)\/[^/]+/, "$1")}`;
    await this.#waitForLimit(route, options.signal);
    const { isOk, status, headers, answer } = await sendRequest<Answer>("Discord", `${this.#base}${path}`, {
      method,
      ...buildBody(options, this.#token),
      timeoutMs: options.file === undefined ? TIMEOUT_MS : UPLOAD_TIMEOUT_MS,
      signal: options.signal,
    });
    this.#storeLimit(route, headers);
    if (isOk) return answer as T;
    throw this.#createError(route, status, headers, answer);
  }

  /** Opens a file of a message. Throws as call() does. */
  async download(address: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    if (!this.isDiscord(address)) throw new DiscordError(400, "Discord named an address outside of Discord");
    // The address has its own signature, so the request needs no key.
    const response = await requireAnswer("Discord", () => fetch(address, { redirect: "manual", signal }));
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    throw new DiscordError(response.status, `Discord answered ${response.status}`);
  }

  /** Checks that an address belongs to Discord: the key must not reach other hosts. */
  isDiscord(address: string): boolean {
    const url = URL.parse(address);
    if (url?.host === new URL(this.#base).host) return true;
    return url !== null && ["https:", "wss:"].includes(url.protocol) && HOSTS.test(url.hostname);
  }

  async #waitForLimit(route: string, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const until = Math.max(this.#limits.get(route) ?? 0, this.#limits.get(EVERYTHING) ?? 0);
      const waitMs = until - this.#clock.monotonic();
      if (waitMs <= 0 || signal?.aborted === true) return;
      if (waitMs > LIMIT_WAIT_MS) {
        const isGlobal = this.#limits.get(EVERYTHING) === until;
        throw new DiscordError(429, "Discord limits the bot", { retryAfterMs: waitMs, isGlobal });
      }
      await sleep(this.#clock, waitMs, signal);
    }
  }

  #storeLimit(route: string, headers: Headers): void {
    const ms = parsePauseSeconds(headers.get("x-ratelimit-reset-after"));
    if (headers.get("x-ratelimit-remaining") !== "0" || ms === null) return;
    this.#limits.set(route, this.#clock.monotonic() + ms);
  }

  #createError(route: string, status: number, headers: Headers, answer: Partial<Answer>): DiscordError {
    const words = `Discord answered ${status}${answer.message === undefined ? "" : `: ${answer.message}`}`;
    if (status !== 429) return new DiscordError(status, words, { code: answer.code ?? 0 });
    const retryAfterMs = parsePauseSeconds(answer.retry_after ?? headers.get("retry-after")) ?? LIMITED_MS;
    const isGlobal = answer.global === true || headers.get("x-ratelimit-global") === "true";
    this.#limits.set(isGlobal ? EVERYTHING : route, this.#clock.monotonic() + retryAfterMs);
    return new DiscordError(status, words, { retryAfterMs, isGlobal });
  }
}

function buildBody(
  { body, file, isOpen = false }: CallOptions,
  token: string,
): { headers: Record<string, string>; body?: BodyInit } {
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
