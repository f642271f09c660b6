import type { Clock } from "../../base/clock.ts";
import { answerText } from "../answer.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { answered, notSent } from "../request.ts";

const HOSTS = { feishu: "https://open.feishu.cn", lark: "https://open.larksuite.com" };
const TIMEOUT_MS = 15_000;
const UPLOAD_MS = 120_000;
// A token is fetched anew before it ends.
const TOKEN_SPARE_S = 300;
/** The token is not known any more: fetched anew, once. */
const TOKEN_CODES = [99991661, 99991663, 99991664, 99991668, 99991671];
/** Too much for this app, or for this chat. */
const RATE_CODES = [99991400, 11232];
const CHAT_RATE_CODES = [230020, 11247];
/** Of the address of the long connection: Feishu itself is not well. */
const BUSY_CODES = [1, 1000040343];

/** What Feishu answered instead of a result. */
export class FeishuError extends Error {
  readonly code: number;
  readonly status: number;
  readonly retryAfterMs: number | null;
  /** The key of the app does not count. */
  readonly isRefused: boolean;

  constructor(
    code: number,
    message: string,
    { status = 200, retryAfterMs = null as number | null, isRefused = false } = {},
  ) {
    super(`Feishu answered ${code === 0 ? status : code}: ${message.slice(0, 300)}`);
    this.name = "FeishuError";
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.isRefused = isRefused;
  }

  /** Too much: of this chat, or of everything. */
  get limited(): "chat" | "platform" | null {
    if (CHAT_RATE_CODES.includes(this.code)) return "chat";
    return this.status === 429 || RATE_CODES.includes(this.code) ? "platform" : null;
  }
}

/** How an app reaches Feishu. */
export interface FeishuSettings {
  app_id: string;
  app_secret: string;
  domain: keyof typeof HOSTS;
  base_url: string;
}

interface Call {
  query?: Record<string, string>;
  body?: object;
  form?: FormData;
  signal?: AbortSignal;
}

interface Answer {
  code?: number;
  msg?: string;
  data?: unknown;
}

interface Token {
  value: string;
  endsAt: number;
}

/** Calls of one app. The secret and its tokens go to the address of the configuration alone. */
export class FeishuClient {
  readonly #base: string;
  readonly #app: { app_id: string; app_secret: string };
  readonly #clock: Clock;
  #token: Promise<Token> | null = null;

  constructor({ app_id, app_secret, domain, base_url }: FeishuSettings, clock: Clock) {
    this.#base = (base_url || HOSTS[domain]).replace(/\/$/, "");
    this.#app = { app_id, app_secret };
    this.#clock = clock;
  }

  /** The `data` of the answer, or all of it. Throws FeishuError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const { query, ...rest } = call;
    const search = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    const answer = await this.#authorized((headers) =>
      this.#json(`/open-apis${path}${search}`, { method, headers, ...rest })
    );
    return (answer.data ?? answer) as T;
  }

  /** Where the long connection is, and how often it wants a ping. Throws as call() does. */
  async connection(signal: AbortSignal): Promise<{ url: string; pingMs: number | null }> {
    const body = { AppID: this.#app.app_id, AppSecret: this.#app.app_secret };
    const { data } = await this.#json(
      "/callback/ws/endpoint",
      { method: "POST", body, signal },
      (code) => !BUSY_CODES.includes(code),
    );
    const { URL: url = "", ClientConfig: config } = (data ?? {}) as {
      URL?: string;
      ClientConfig?: { PingInterval?: number };
    };
    const isEncrypted = this.#base.startsWith("https:");
    if (!(isEncrypted ? /^wss:/ : /^wss?:/).test(url)) {
      throw new FeishuError(0, "no address of a long connection");
    }
    return { url, pingMs: config?.PingInterval === undefined ? null : config.PingInterval * 1000 };
  }

  /** Stores a file for a message; answers its key. Throws as call() does. */
  async upload({ name, bytes }: PartFile): Promise<string> {
    const form = new FormData();
    form.set("file_type", "stream");
    form.set("file_name", name);
    form.set("file", new File([bytes], name));
    const sent = await notSent(() => this.call<{ file_key: string }>("POST", "/im/v1/files", { form }));
    return sent.file_key;
  }

  /** The bytes of a file of a message, as they come. Throws as call() does. */
  async download(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return await this.#authorized(async (headers) => {
      const response = await answered(
        "Feishu",
        () =>
          fetch(`${this.#base}/open-apis/im/v1/messages/${path}`, { headers, redirect: "manual", signal }),
      );
      if (response.ok && response.body !== null) return response.body;
      throw failure(parsed(await answered("Feishu", () => answerText(response))), response);
    });
  }

  // A token that is not known any more is fetched anew: what was refused for it was not done.
  async #authorized<T>(request: (headers: Record<string, string>) => Promise<T>): Promise<T> {
    for (let isAgain = false;; isAgain = true) {
      const token = await notSent(() => this.#tokenNow());
      try {
        return await request({ authorization: `Bearer ${token}` });
      } catch (error) {
        const isStale = error instanceof FeishuError && TOKEN_CODES.includes(error.code);
        if (!isStale || isAgain) throw error;
        this.#token = null;
      }
    }
  }

  async #tokenNow(): Promise<string> {
    const known = await this.#token?.catch(() => null);
    if (known && known.endsAt > this.#clock.now()) return known.value;
    const fetching = this.#fetchToken();
    this.#token = fetching;
    try {
      return (await fetching).value;
    } catch (error) {
      if (this.#token === fetching) this.#token = null;
      throw error;
    }
  }

  async #fetchToken(): Promise<Token> {
    const path = "/open-apis/auth/v3/tenant_access_token/internal";
    const answer = await this.#json(path, { method: "POST", body: this.#app }, () => true);
    const { tenant_access_token: value = "", expire = 0 } = answer as {
      tenant_access_token?: string;
      expire?: number;
    };
    const lifeS = Math.max(expire - TOKEN_SPARE_S, expire / 2);
    return { value, endsAt: this.#clock.now() + lifeS * 1000 };
  }

  async #json(
    path: string,
    { method, headers = {}, body, form, signal }: Call & { method: string; headers?: Record<string, string> },
    refuses: (code: number) => boolean = () => false,
  ): Promise<Answer> {
    const limit = AbortSignal.timeout(form === undefined ? TIMEOUT_MS : UPLOAD_MS);
    const { response, text } = await answered("Feishu", async () => {
      const response = await fetch(`${this.#base}${path}`, {
        method,
        headers: body === undefined
          ? headers
          : { ...headers, "content-type": "application/json; charset=utf-8" },
        ...(body === undefined ? form === undefined ? {} : { body: form } : { body: JSON.stringify(body) }),
        redirect: "manual",
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      });
      return { response, text: await answerText(response) };
    });
    const answer = parsed(text);
    if (response.ok && answer.code === 0) return answer;
    throw failure(answer, response, refuses);
  }
}

function parsed(text: string): Answer {
  try {
    const answer = JSON.parse(text);
    return typeof answer === "object" && answer !== null ? answer : {};
  } catch {
    return {};
  }
}

function failure(
  { code = 0, msg = "no JSON" }: Answer,
  { status, headers }: Response,
  refuses: (code: number) => boolean = () => false,
): FeishuError {
  const seconds = Number(headers.get("x-ogw-ratelimit-reset") ?? headers.get("retry-after") ?? NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  const error = new FeishuError(code, msg, { status, retryAfterMs });
  const isKey = code !== 0 && status < 500 && error.limited === null && refuses(code);
  return isKey ? new FeishuError(code, msg, { status, isRefused: true }) : error;
}

/** What a failed call means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof FeishuError)) return new DeliveryError("refused", String(error));
  const { limited, message, retryAfterMs, status, isRefused } = error;
  if (limited !== null) return new DeliveryError("limited", message, { scope: limited, retryAfterMs });
  const isAway = isRefused || status >= 500 || TOKEN_CODES.includes(error.code);
  return new DeliveryError(isAway ? "unreachable" : "refused", message);
}
