import type { PartFile } from "../part_file.ts";
import { type DeliveryError, type NamedBytes, PlatformError } from "../platform.ts";
import { requireAnswer, runBeforeSend, sendRequest, UPLOAD_TIMEOUT_MS } from "../request.ts";
import { parsePauseSeconds } from "../retry_after.ts";
import { readFile, type SlackFile } from "./content.ts";

const FILE_ID = /^F[A-Z0-9]+$/;
const BASE_URL = "https://slack.com/api/";
// Pause after a limit without a time.
const LIMITED_MS = 30_000;
/** Errors after which a person must act before another try helps. */
const KEY_ERRORS = [
  "invalid_auth",
  "not_authed",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "not_allowed_token_type",
  "link_disabled",
];
const SERVER_ERRORS = ["internal_error", "fatal_error", "service_unavailable", "request_timeout"];

export class SlackError extends PlatformError {
  readonly code: string;

  constructor(code: string, retryAfterMs: number | null = null) {
    super(`Slack answered ${code}`, retryAfterMs);
    this.code = code;
  }

  get isKeyRefused(): boolean {
    return KEY_ERRORS.includes(this.code);
  }

  /** Another try gets the same answer. */
  get isFinal(): boolean {
    return this.code !== "ratelimited" && !SERVER_ERRORS.includes(this.code);
  }

  get why(): DeliveryError["why"] {
    if (this.code === "ratelimited") return "limited";
    return this.isKeyRefused || !this.isFinal ? "unreachable" : "refused";
  }

  override get scope(): DeliveryError["scope"] {
    return "chat";
  }
}

/** Calls Slack for one app with one of its tokens. */
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
    const { status, headers, answer } = await sendRequest<{ ok: unknown; error: unknown }>(
      "Slack",
      `${this.#base}${method}`,
      { headers: { authorization: `Bearer ${this.#token}` }, body: form, signal },
    );
    if (status === 429) {
      throw new SlackError("ratelimited", parsePauseSeconds(headers.get("retry-after")) ?? LIMITED_MS);
    }
    if (status >= 500) throw new SlackError("service_unavailable");
    if (answer.ok !== true) throw new SlackError(String(answer.error ?? `status ${status}`));
    return answer as T;
  }

  /** Sends a file to a chat. Returns the id of the file. Throws as call() does. */
  async upload(
    { name, bytes }: PartFile,
    place: { channel_id: string; thread_ts?: string },
  ): Promise<string> {
    // The chat shows nothing before the last step.
    const file_id = await runBeforeSend(() => this.#uploadBytes(name, bytes));
    await this.call("files.completeUploadExternal", { files: [{ id: file_id, title: name }], ...place });
    return file_id;
  }

  async #uploadBytes(name: string, bytes: PartFile["bytes"]): Promise<string> {
    const target = { filename: name, length: bytes.length };
    const { upload_url, file_id } = await this.call<{ upload_url: string; file_id: string }>(
      "files.getUploadURLExternal",
      target,
    );
    this.#checkHost(upload_url);
    const request = { body: bytes, timeoutMs: UPLOAD_TIMEOUT_MS };
    const { status } = await sendRequest("Slack", upload_url, request);
    if (status === 200) return file_id;
    if (status >= 500) throw new SlackError("service_unavailable");
    throw new SlackError(status === 429 ? "ratelimited" : `status ${status}`);
  }

  /** Opens a file by its address, or by its id if the message has no address. Throws as call() does. */
  async download(ref: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | NamedBytes> {
    if (!FILE_ID.test(ref)) return await this.#open(ref, signal);
    const { file } = await this.call<{ file: SlackFile }>("files.info", { file: ref }, signal);
    const read = readFile(file);
    if (typeof read === "string") throw new SlackError(read);
    if (read.ref === ref) throw new SlackError("no address of the file");
    return { name: read.name, bytes: await this.#open(read.ref, signal) };
  }

  async #open(url: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.#checkHost(url);
    const headers = { authorization: `Bearer ${this.#token}` };
    const response = await requireAnswer("Slack", () => fetch(url, { headers, redirect: "manual", signal }));
    // Without the scope files:read, Slack answers a login page.
    const isPage = /^text\/html/.test(response.headers.get("content-type") ?? "");
    if (response.ok && response.body !== null && !isPage) return response.body;
    await response.body?.cancel();
    if (isPage) throw new SlackError("no_permission: the scope files:read is missing");
    throw new SlackError(response.status >= 500 ? "service_unavailable" : `status ${response.status}`);
  }

  // The token must not reach other hosts.
  #checkHost(address: string): void {
    const url = URL.parse(address);
    const base = new URL(this.#base);
    const isSlack = base.origin === new URL(BASE_URL).origin && url?.protocol === "https:" &&
      /(^|\.)slack\.com$/.test(url.hostname);
    if (!isSlack && url?.origin !== base.origin) throw new SlackError("an address outside of Slack");
  }
}
