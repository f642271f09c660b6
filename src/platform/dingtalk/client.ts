import type { Clock } from "../../base/clock.ts";
import { RefusedAddressError } from "../../base/address.ts";
import { callOutside } from "../guarded_fetch.ts";
import { AccessToken } from "../access_token.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError, PlatformError } from "../platform.ts";
import { type JsonRequest, requestJson, runBeforeSend } from "../request.ts";

const API = "https://api.dingtalk.com";
/** Address of the older interface, which stores the files. */
const OLD_API = "https://oapi.dingtalk.com";
const DOWNLOAD_MS = 60_000;
// Above the default limit for uploads, so that the configured limit applies.
const FILE_BYTES = 64 * 1024 * 1024;
const LIMIT_CODE = /QpsLimit|Throttl|FlowControl|TooManyRequests/i;
/** The older interface's codes for an expired token and for a rate limit. */
const OLD_TOKEN_CODES = [40001, 40014, 42001];
const OLD_LIMIT_CODES = [90002, 90005, 90006, 90018];

export class DingTalkError extends PlatformError {
  readonly code: string;
  readonly status: number;
  readonly #isAboutKey: boolean;

  constructor(code: string, message: string, { status = 200, isAboutKey = false } = {}) {
    super(`DingTalk answered ${code || status}: ${message.slice(0, 300)}`);
    this.code = code;
    this.status = status;
    this.#isAboutKey = isAboutKey;
  }

  get isKeyRefused(): boolean {
    return this.#isAboutKey && this.status < 500 && !this.#isLimited;
  }

  get why(): DeliveryError["why"] {
    if (this.#isLimited) return "limited";
    return this.isKeyRefused || this.isTokenExpired || this.status >= 500 ? "unreachable" : "refused";
  }

  get isTokenExpired(): boolean {
    return this.status === 401 || /InvalidAuthentication/i.test(this.code) ||
      OLD_TOKEN_CODES.includes(Number(this.code));
  }

  get #isLimited(): boolean {
    return this.status === 429 || LIMIT_CODE.test(this.code) || OLD_LIMIT_CODES.includes(Number(this.code));
  }
}

export interface DingTalkSettings {
  client_id: string;
  client_secret: string;
  /** Code of the robot. "" means the id of the app. */
  robot_code: string;
  base_url: string;
  /** Address of the older interface. "" means `base_url`. */
  oapi_url: string;
}

interface Answer {
  code?: string;
  message?: string;
  errcode?: number;
  errmsg?: string;
}

/** Calls DingTalk for one app. Sends the secret and its tokens only to the addresses of the configuration. */
export class DingTalkClient {
  readonly robotCode: string;
  readonly #settings: DingTalkSettings;
  readonly #base: string;
  readonly #oldBase: string;
  readonly #token: AccessToken;

  constructor(settings: DingTalkSettings, clock: Clock) {
    const { client_id, robot_code, base_url, oapi_url } = settings;
    this.robotCode = robot_code || client_id;
    this.#settings = settings;
    this.#base = (base_url || API).replace(/\/$/, "");
    this.#oldBase = (oapi_url || base_url || OLD_API).replace(/\/$/, "");
    this.#token = new AccessToken({
      clock,
      fetch: () => this.#fetchToken(),
      isStale: (error) => error instanceof DingTalkError && error.isTokenExpired,
    });
  }

  /** Throws DingTalkError for a refusal, DeliveryError without an answer. */
  async call<T extends object>(path: string, body: object, { method = "POST" } = {}): Promise<Partial<T>> {
    return await this.#token.use((token) =>
      this.#json<T>(path, { method, body, headers: { "x-acs-dingtalk-access-token": token } })
    );
  }

  /** Finds the address of the stream. Throws as call() does. */
  async connection(topics: readonly object[], signal?: AbortSignal): Promise<string> {
    const { client_id: clientId, client_secret: clientSecret } = this.#settings;
    const body = { clientId, clientSecret, ua: "svc", subscriptions: topics };
    const headers = { accept: "application/json" };
    const { endpoint = "", ticket = "" } = await this.#json<{ endpoint: string; ticket: string }>(
      "/v1.0/gateway/connections/open",
      { body, headers, signal },
      true,
    );
    const isEncrypted = this.#base.startsWith("https:");
    if (!(isEncrypted ? /^wss:/ : /^wss?:/).test(endpoint) || ticket === "") {
      throw new DingTalkError("", "no address of a stream");
    }
    return `${endpoint}?ticket=${encodeURIComponent(ticket)}`;
  }

  /** Checks the key. Throws as call() does. */
  async check(): Promise<void> {
    await this.#token.use(() => Promise.resolve());
  }

  /** Stores a file for a message. Returns its id. Throws as call() does. */
  async upload({ name, bytes, mime }: PartFile): Promise<string> {
    return await runBeforeSend(() =>
      this.#token.use(async (token) => {
        const form = new FormData();
        form.set("media", new File([bytes], name, { type: mime }));
        const query = new URLSearchParams({ access_token: token, type: "file" });
        const url = `${this.#oldBase}/media/upload?${query}`;
        const { isOk, status, answer } = await requestJson<Answer & { media_id: string }>("DingTalk", url, {
          form,
        });
        if (isOk && answer.errcode === 0 && answer.media_id !== undefined) return answer.media_id;
        throw createError(answer, status);
      })
    );
  }

  /** Reads a file of a message. Throws as call() does. */
  async download(downloadCode: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { downloadUrl: url = "" } = await this.call<{ downloadUrl: string }>(
      "/v1.0/robot/messageFiles/download",
      { downloadCode, robotCode: this.robotCode },
    );
    const isOwn = this.#settings.base_url !== "" && URL.parse(url)?.origin === new URL(this.#base).origin;
    let fetched;
    try {
      fetched = await callOutside({
        url,
        method: "GET",
        timeoutMs: DOWNLOAD_MS,
        answerMaxBytes: FILE_BYTES,
        allowPrivate: isOwn,
        signal,
      });
    } catch (error) {
      const words = `download failed: ${error instanceof Error ? error.message : error}`;
      throw new DeliveryError(error instanceof RefusedAddressError ? "refused" : "unreachable", words);
    }
    if (fetched.status !== 200) throw new DingTalkError("", "no file", { status: fetched.status });
    return new Blob([new Uint8Array(fetched.body)]).stream();
  }

  async #fetchToken(): Promise<{ value: string; lifeS: number }> {
    const { client_id: appKey, client_secret: appSecret } = this.#settings;
    const { accessToken: value = "", expireIn: lifeS = 0 } = await this.#json<
      { accessToken: string; expireIn: number }
    >("/v1.0/oauth2/accessToken", { body: { appKey, appSecret } }, true);
    return { value, lifeS };
  }

  /** `isAboutKey`: DingTalk can refuse this request only because of the key. */
  async #json<T extends object>(
    path: string,
    request: JsonRequest,
    isAboutKey = false,
  ): Promise<Partial<T>> {
    const { isOk, status, answer } = await requestJson<T & Answer>(
      "DingTalk",
      `${this.#base}${path}`,
      request,
    );
    if (isOk) return answer;
    throw createError(answer as Answer, status, isAboutKey);
  }
}

function createError(answer: Answer, status: number, isAboutKey = false): DingTalkError {
  const code = answer.code ?? String(answer.errcode ?? "");
  return new DingTalkError(code, answer.message ?? answer.errmsg ?? "no JSON", { status, isAboutKey });
}
