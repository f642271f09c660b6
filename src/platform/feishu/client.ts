import type { Clock } from "../../base/clock.ts";
import { AccessToken } from "../access_token.ts";
import type { PartFile } from "../part_file.ts";
import { type DeliveryError, PlatformError } from "../platform.ts";
import {
  type JsonRequest,
  parseJsonObject,
  readAnswerText,
  requestJson,
  requireAnswer,
  runBeforeSend,
} from "../request.ts";
import { parsePauseSeconds } from "../retry_after.ts";

const HOSTS = { feishu: "https://open.feishu.cn", lark: "https://open.larksuite.com" };
/** Codes for an expired token. */
const TOKEN_CODES = [99991661, 99991663, 99991664, 99991668, 99991671];
/** Codes for a rate limit of the app, and of a chat. */
const RATE_CODES = [99991400, 11232];
const CHAT_RATE_CODES = [230020, 11247];
/** Codes while Feishu has no address for the long connection. */
const BUSY_CODES = [1, 1000040343];

export class FeishuError extends PlatformError {
  readonly code: number;
  readonly status: number;
  readonly #isAboutKey: boolean;

  constructor(
    code: number,
    message: string,
    { status = 200, retryAfterMs = null as number | null, isAboutKey = false } = {},
  ) {
    super(`Feishu answered ${code === 0 ? status : code}: ${message.slice(0, 300)}`, retryAfterMs);
    this.code = code;
    this.status = status;
    this.#isAboutKey = isAboutKey;
  }

  get isKeyRefused(): boolean {
    return this.#isAboutKey && this.code !== 0 && this.status < 500 && !this.#isLimited;
  }

  get why(): DeliveryError["why"] {
    if (this.#isLimited) return "limited";
    return this.isKeyRefused || this.status >= 500 || this.isTokenExpired ? "unreachable" : "refused";
  }

  override get scope(): DeliveryError["scope"] {
    return CHAT_RATE_CODES.includes(this.code) ? "chat" : "platform";
  }

  get isTokenExpired(): boolean {
    return TOKEN_CODES.includes(this.code);
  }

  get #isLimited(): boolean {
    return this.status === 429 || [...RATE_CODES, ...CHAT_RATE_CODES].includes(this.code);
  }
}

export interface FeishuSettings {
  app_id: string;
  app_secret: string;
  domain: keyof typeof HOSTS;
  base_url: string;
}

interface CallOptions extends Pick<JsonRequest, "body" | "form" | "signal"> {
  query?: Record<string, string>;
}

interface Answer {
  code?: number;
  msg?: string;
  data?: unknown;
  tenant_access_token?: string;
  expire?: number;
}

/** Calls Feishu for one app. Sends the secret and its tokens only to the address of the configuration. */
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
      isStale: (error) => error instanceof FeishuError && error.isTokenExpired,
    });
  }

  /** Returns the `data` of the answer, else all of it. Throws FeishuError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, path: string, { query, ...rest }: CallOptions = {}): Promise<T> {
    const search = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    const answer = await this.#token.use((token) =>
      this.#json(`/open-apis${path}${search}`, { method, headers: buildAuthorization(token), ...rest })
    );
    return (answer.data ?? answer) as T;
  }

  /** Finds the address of the long connection and the ping interval that Feishu wants. Throws as call() does. */
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

  /** Stores a file for a message. Returns its key. Throws as call() does. */
  async upload({ name, bytes }: PartFile): Promise<string> {
    const form = new FormData();
    form.set("file_type", "stream");
    form.set("file_name", name);
    form.set("file", new File([bytes], name));
    const sent = await runBeforeSend(() => this.call<{ file_key: string }>("POST", "/im/v1/files", { form }));
    return sent.file_key;
  }

  /** Opens a file at the first of these paths that has the file. Throws as call() does. */
  async download(paths: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const [path = "", ...others] = paths.split(" ");
    try {
      return await this.#open(path, signal);
    } catch (error) {
      if (others.length === 0 || !(error instanceof FeishuError) || error.why !== "refused") throw error;
      return await this.download(others.join(" "), signal);
    }
  }

  async #open(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return await this.#token.use(async (token) => {
      const url = `${this.#base}/open-apis/im/v1/messages/${path}`;
      const response = await requireAnswer(
        "Feishu",
        () => fetch(url, { headers: buildAuthorization(token), redirect: "manual", signal }),
      );
      if (response.ok && response.body !== null) return response.body;
      throw createError(
        parseJsonObject(await requireAnswer("Feishu", () => readAnswerText(response))),
        response,
      );
    });
  }

  async #fetchToken(): Promise<{ value: string; lifeS: number }> {
    const path = "/open-apis/auth/v3/tenant_access_token/internal";
    const answer = await this.#json(path, { body: this.#app }, () => true);
    return { value: answer.tenant_access_token ?? "", lifeS: answer.expire ?? 0 };
  }

  async #json(
    path: string,
    request: JsonRequest,
    isAboutKey: (code: number) => boolean = () => false,
  ): Promise<Answer> {
    const { answer, ...response } = await requestJson<Answer>("Feishu", `${this.#base}${path}`, request);
    if (response.isOk && answer.code === 0) return answer;
    throw createError(answer, response, isAboutKey(answer.code ?? 0));
  }
}

function buildAuthorization(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

function createError(
  { code = 0, msg = "no JSON" }: Answer,
  { status, headers }: Pick<Response, "status" | "headers">,
  isAboutKey = false,
): FeishuError {
  const retryAfterMs = parsePauseSeconds(headers.get("x-ogw-ratelimit-reset") ?? headers.get("retry-after"));
  return new FeishuError(code, msg, { status, retryAfterMs, isAboutKey });
}
