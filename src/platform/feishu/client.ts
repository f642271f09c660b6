import type { Clock } from "../../base/clock.ts";
import { AccessToken } from "../access_token.ts";
import { answerText } from "../answer.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { answered, askJson, notSent, objectOf } from "../request.ts";
import { askedMs } from "../retry_after.ts";

const HOSTS = { feishu: "https://open.feishu.cn", lark: "https://open.larksuite.com" };
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
  tenant_access_token?: string;
  expire?: number;
}

/** Calls of one app. The secret and its tokens go to the address of the configuration alone. */
export class FeishuClient {
  readonly #base: string;
  readonly #app: { app_id: string; app_secret: string };
  readonly #token: AccessToken;

  constructor({ app_id, app_secret, domain, base_url }: FeishuSettings, clock: Clock) {
    this.#base = (base_url || HOSTS[domain]).replace(/\/$/, "");
    this.#app = { app_id, app_secret };
    this.#token = new AccessToken({
      clock,
      fetch: () => this.#fetchToken(),
      isStale: (error) => error instanceof FeishuError && TOKEN_CODES.includes(error.code),
    });
  }

  /** The `data` of the answer, or all of it. Throws FeishuError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const { query, ...rest } = call;
    const search = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    const answer = await this.#token.use((token) =>
      this.#json(`/open-apis${path}${search}`, { method, headers: bearer(token), ...rest })
    );
    return (answer.data ?? answer) as T;
  }

  /** Where the long connection is, and how often it wants a ping. Throws as call() does. */
  async connection(signal?: AbortSignal): Promise<{ url: string; pingMs: number | null }> {
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
    return await this.#token.use(async (token) => {
      const url = `${this.#base}/open-apis/im/v1/messages/${path}`;
      const response = await answered(
        "Feishu",
        () => fetch(url, { headers: bearer(token), redirect: "manual", signal }),
      );
      if (response.ok && response.body !== null) return response.body;
      throw failure(objectOf(await answered("Feishu", () => answerText(response))), response);
    });
  }

  async #fetchToken(): Promise<{ value: string; lifeS: number }> {
    const path = "/open-apis/auth/v3/tenant_access_token/internal";
    const answer = await this.#json(path, { body: this.#app }, () => true);
    return { value: answer.tenant_access_token ?? "", lifeS: answer.expire ?? 0 };
  }

  async #json(
    path: string,
    request: Parameters<typeof askJson>[2],
    refuses: (code: number) => boolean = () => false,
  ): Promise<Answer> {
    const { response, answer } = await askJson<Answer>("Feishu", `${this.#base}${path}`, request);
    if (response.ok && answer.code === 0) return answer;
    throw failure(answer, response, refuses);
  }
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

function failure(
  { code = 0, msg = "no JSON" }: Answer,
  { status, headers }: Response,
  refuses: (code: number) => boolean = () => false,
): FeishuError {
  const retryAfterMs = askedMs(headers.get("x-ogw-ratelimit-reset") ?? headers.get("retry-after"));
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
