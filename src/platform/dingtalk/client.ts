import type { Clock } from "../../base/clock.ts";
import { callOutside, RefusedAddress } from "../../base/guarded_fetch.ts";
import { AccessToken } from "../access_token.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { askJson, notSent } from "../request.ts";

const API = "https://api.dingtalk.com";
/** Files are still stored at the address of the older interface. */
const OLD_API = "https://oapi.dingtalk.com";
const DOWNLOAD_MS = 60_000;
// More than the service takes by default, so that its own limit is what people meet.
const FILE_BYTES = 64 * 1024 * 1024;
const LIMIT_CODE = /QpsLimit|Throttl|FlowControl|TooManyRequests/i;
/** Of the older interface: the token, and "too often". */
const OLD_TOKEN_CODES = [40001, 40014, 42001];
const OLD_LIMIT_CODES = [90002, 90005, 90006, 90018];

/** What DingTalk answered instead of a result. */
export class DingTalkError extends Error {
  readonly code: string;
  readonly status: number;
  /** The key of the app does not count. */
  readonly isRefused: boolean;

  constructor(code: string, message: string, { status = 200, isRefused = false } = {}) {
    super(`DingTalk answered ${code || status}: ${message.slice(0, 300)}`);
    this.name = "DingTalkError";
    this.code = code;
    this.status = status;
    this.isRefused = isRefused;
  }

  get isLimited(): boolean {
    return this.status === 429 || LIMIT_CODE.test(this.code) || OLD_LIMIT_CODES.includes(Number(this.code));
  }

  /** The token is not known any more. */
  get isStale(): boolean {
    return this.status === 401 || /InvalidAuthentication/i.test(this.code) ||
      OLD_TOKEN_CODES.includes(Number(this.code));
  }
}

/** How an app reaches DingTalk. */
export interface DingTalkSettings {
  client_id: string;
  client_secret: string;
  /** The id of its robot; that of the app when it is empty. */
  robot_code: string;
  base_url: string;
  /** Of the older interface; `base_url` when it is empty. */
  oapi_url: string;
}

interface Answer {
  code?: string;
  message?: string;
  errcode?: number;
  errmsg?: string;
}

/** Calls of one app. The secret and its tokens go to the addresses of the configuration alone. */
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
      isStale: (error) => error instanceof DingTalkError && error.isStale,
    });
  }

  /** Throws DingTalkError for a refusal, DeliveryError without an answer. */
  async call<T extends object>(path: string, body: object, { method = "POST" } = {}): Promise<Partial<T>> {
    return await this.#token.use((token) =>
      this.#json<T>(path, { method, body, headers: { "x-acs-dingtalk-access-token": token } })
    );
  }

  /** Where the stream is. Throws as call() does. */
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

  /** Asks for a token: whether the key counts. Throws as call() does. */
  async check(): Promise<void> {
    await this.#token.use(() => Promise.resolve());
  }

  /** Stores a file for a message; answers its id. Throws as call() does. */
  async upload({ name, bytes, mime }: PartFile): Promise<string> {
    return await notSent(() =>
      this.#token.use(async (token) => {
        const form = new FormData();
        form.set("media", new File([bytes], name, { type: mime }));
        const query = new URLSearchParams({ access_token: token, type: "file" });
        const url = `${this.#oldBase}/media/upload?${query}`;
        const { response, answer } = await askJson<Answer & { media_id: string }>("DingTalk", url, { form });
        if (response.ok && answer.errcode === 0 && answer.media_id !== undefined) return answer.media_id;
        throw failure(answer, response);
      })
    );
  }

  /** The bytes of a file of a message. Throws as call() does. */
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
      const words = `the file cannot be fetched: ${error instanceof Error ? error.message : error}`;
      throw new DeliveryError(error instanceof RefusedAddress ? "refused" : "unreachable", words);
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

  /** `isKey`: what is refused here is refused for the key of the app. */
  async #json<T extends object>(
    path: string,
    request: Parameters<typeof askJson>[2],
    isKey = false,
  ): Promise<Partial<T>> {
    const { response, answer } = await askJson<T & Answer>("DingTalk", `${this.#base}${path}`, request);
    if (response.ok) return answer;
    throw failure(answer as Answer, response, isKey);
  }
}

function failure(answer: Answer, { status }: Response, isKey = false): DingTalkError {
  const code = answer.code ?? String(answer.errcode ?? "");
  const words = answer.message ?? answer.errmsg ?? "no JSON";
  const error = new DingTalkError(code, words, { status });
  const isRefused = isKey && status < 500 && !error.isLimited;
  return isRefused ? new DingTalkError(code, words, { status, isRefused }) : error;
}

/** What a failed call means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof DingTalkError)) return new DeliveryError("refused", String(error));
  const { isLimited, isRefused, isStale, status, message } = error;
  if (isLimited) return new DeliveryError("limited", message);
  return new DeliveryError(isRefused || isStale || status >= 500 ? "unreachable" : "refused", message);
}
