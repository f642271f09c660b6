import { answerText } from "../answer.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { answered, notSent, objectOf } from "../request.ts";
import { askedMs } from "../retry_after.ts";

const BASE_URL = "https://slack.com/api/";
const TIMEOUT_MS = 15_000;
const UPLOAD_MS = 120_000;
// Slack says how long; this is for when it does not.
const LIMITED_MS = 30_000;
/** What no further try makes better: somebody has to do something first. */
const KEY_ERRORS = [
  "invalid_auth",
  "not_authed",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "not_allowed_token_type",
];
const SERVER_ERRORS = ["internal_error", "fatal_error", "service_unavailable", "request_timeout"];

/** What Slack answered instead of a result, by its own word. */
export class SlackError extends Error {
  readonly code: string;
  readonly retryAfterMs: number | null;

  constructor(code: string, retryAfterMs: number | null = null) {
    super(`Slack answered ${code}`);
    this.name = "SlackError";
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }

  /** The key does not count. */
  get isRefused(): boolean {
    return KEY_ERRORS.includes(this.code);
  }

  /** Another try gives the same. */
  get isFinal(): boolean {
    return this.code !== "ratelimited" && !SERVER_ERRORS.includes(this.code);
  }
}

/** Calls of one app with one of its tokens. */
export class SlackClient {
  readonly #base: string;
  readonly #token: string;

  constructor(token: string, baseUrl: string) {
    this.#base = (baseUrl || BASE_URL).replace(/\/?$/, "/");
    this.#token = token;
  }

  /** Throws SlackError for a refusal, DeliveryError without an answer. */
  async call<T>(method: string, fields: object, signal?: AbortSignal): Promise<T> {
    const form = new URLSearchParams();
    for (const [name, value] of Object.entries(fields)) {
      form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    const limit = AbortSignal.timeout(TIMEOUT_MS);
    const { status, retryAfter, text } = await answered("Slack", async () => {
      const response = await fetch(`${this.#base}${method}`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#token}` },
        body: form,
        redirect: "manual",
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      });
      return {
        status: response.status,
        retryAfter: response.headers.get("retry-after"),
        text: await answerText(response),
      };
    });
    if (status === 429) throw new SlackError("ratelimited", askedMs(retryAfter) ?? LIMITED_MS);
    if (status >= 500) throw new SlackError("service_unavailable");
    const answer = objectOf<{ ok: unknown; error: unknown }>(text);
    if (answer.ok !== true) throw new SlackError(String(answer.error ?? `status ${status}`));
    return answer as T;
  }

  /** Sends a file into a chat; answers the id of the file. Throws as call() does. */
  async upload(
    { name, bytes }: PartFile,
    place: { channel_id: string; thread_ts?: string },
  ): Promise<string> {
    // Nothing is seen in the chat before the last step.
    const file_id = await notSent(() => this.#bring(name, bytes));
    await this.call("files.completeUploadExternal", { files: [{ id: file_id, title: name }], ...place });
    return file_id;
  }

  async #bring(name: string, bytes: PartFile["bytes"]): Promise<string> {
    const target = { filename: name, length: bytes.length };
    const { upload_url, file_id } = await this.call<{ upload_url: string; file_id: string }>(
      "files.getUploadURLExternal",
      target,
    );
    this.#check(upload_url);
    const status = await answered("Slack", async () => {
      const response = await fetch(upload_url, {
        method: "POST",
        body: bytes,
        redirect: "manual",
        signal: AbortSignal.timeout(UPLOAD_MS),
      });
      await response.body?.cancel();
      return response.status;
    });
    if (status === 200) return file_id;
    if (status >= 500) throw new SlackError("service_unavailable");
    throw new SlackError(status === 429 ? "ratelimited" : `status ${status}`);
  }

  /** The bytes of a file of a message, as they come. Throws as call() does. */
  async download(url: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.#check(url);
    const headers = { authorization: `Bearer ${this.#token}` };
    const response = await answered("Slack", () => fetch(url, { headers, redirect: "manual", signal }));
    // Without the right to read files comes a page that asks for a login.
    const isPage = /^text\/html/.test(response.headers.get("content-type") ?? "");
    if (response.ok && response.body !== null && !isPage) return response.body;
    await response.body?.cancel();
    if (isPage) throw new SlackError("no_permission: the scope files:read is missing");
    throw new SlackError(response.status >= 500 ? "service_unavailable" : `status ${response.status}`);
  }

  // The token goes to Slack's own hosts alone (contract 11).
  #check(address: string): void {
    const url = URL.parse(address);
    const base = new URL(this.#base);
    const isSlack = base.origin === new URL(BASE_URL).origin && url?.protocol === "https:" &&
      /(^|\.)slack\.com$/.test(url.hostname);
    if (!isSlack && url?.origin !== base.origin) throw new SlackError("an address outside of Slack");
  }
}

/** What a failed call means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof SlackError)) return new DeliveryError("refused", String(error));
  const { code, message, retryAfterMs } = error;
  if (code === "ratelimited") return new DeliveryError("limited", message, { scope: "chat", retryAfterMs });
  if (error.isRefused || !error.isFinal) return new DeliveryError("unreachable", message);
  return new DeliveryError("refused", message);
}
