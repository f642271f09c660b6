import { type ClientConfig, readClientConfig } from "../../src/config/file.ts";
import type { Api } from "../../src/http/app.ts";
import { Credential } from "./credential.ts";
import { usageError } from "../terminal/exit.ts";
import type { Upload } from "./upload_form.ts";
import type { Io } from "../terminal/io.ts";
import { createsSomething, sendTwice } from "./retry.ts";
import { findServerUrl } from "./server_address.ts";
import { parseJson, readProblem, Transport } from "./transport.ts";

type PathParams<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & PathParams<Rest>
  : Path extends `${string}:${infer Name}` ? { [K in Name]: string }
  // deno-lint-ignore ban-types
  : {};

/** The parameters, query and body of a request. */
export interface RequestParts<E extends keyof Api> {
  params?: PathParams<E>;
  query?: {
    [K in keyof Api[E]["query"]]?: Api[E]["query"][K] | string | number | boolean | string[] | undefined;
  };
  body?: Api[E]["body"];
  /** A body to send instead of the JSON body. */
  upload?: Upload;
  headers?: Record<string, string>;
}

export interface Answer<T> {
  json: string;
  value: T;
  headers: Headers;
}

/** The flags that select and trust a server. */
interface ClientFlags {
  config?: string | undefined;
  ca?: string | undefined;
  /** How long to retry a lost connection. */
  reconnectMs?: number;
}

const READY_MAX_MS = 2_000;

/** Sends requests to the server. The types come from its route table, which is not loaded. */
export class Client {
  readonly #io: Io;
  readonly #flags: ClientFlags;
  readonly #transport: Transport;
  readonly #credential: Credential;
  #config: ClientConfig | null = null;
  #url: string | null = null;

  get reconnectMs(): number {
    return this.#flags.reconnectMs ?? 0;
  }

  constructor(io: Io, flags: ClientFlags) {
    this.#io = io;
    this.#flags = flags;
    this.#transport = new Transport(io, flags.ca);
    this.#credential = new Credential(io, this.#transport, () => this.#configuration());
  }

  /** Sends requests without a token, such as a login. */
  get transport(): Transport {
    return this.#transport;
  }

  /**
   * Sends a request and returns its JSON. A create request carries an idempotency key and is sent once more after a
   * lost connection (contract 8.6). Throws the server's ServiceError, or `unavailable`.
   */
  async call<E extends keyof Api & string>(
    endpoint: E,
    parts: RequestParts<E> = {},
  ): Promise<Answer<Api[E]["response"]>> {
    if (!createsSomething(endpoint) || parts.upload !== undefined) return await this.#once(endpoint, parts);
    const headers = { "idempotency-key": crypto.randomUUID(), ...parts.headers };
    const { signal } = this.#io;
    return await sendTwice(() => this.#once(endpoint, { ...parts, headers }), {
      signal,
      withinMs: this.reconnectMs,
      isReady: () => this.isReady(READY_MAX_MS),
    });
  }

  async #once<E extends keyof Api & string>(
    endpoint: E,
    parts: RequestParts<E>,
  ): Promise<Answer<Api[E]["response"]>> {
    const response = await this.open(endpoint, parts);
    const json = await response.text();
    return { json, value: json === "" ? undefined : parseJson(json, response), headers: response.headers };
  }

  /** Sends a request and returns the response for streaming. Throws like call(). */
  async open<E extends keyof Api & string>(endpoint: E, parts: RequestParts<E> = {}): Promise<Response> {
    const [method = "GET", path = "/"] = endpoint.split(" ");
    const filled = fillPath(path, parts.params ?? {});
    this.#credential.check();
    const address = await this.url();
    const url = new URL(address + filled);
    for (const [name, value] of Object.entries(parts.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const { body, upload } = parts;
    const init = {
      method,
      headers: {
        ...(upload === undefined ? {} : { "content-type": upload.contentType }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...parts.headers,
      },
      ...(upload === undefined ? {} : { body: upload.body }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const token = await this.#credential.token(address);
    let response = await this.#send(url, token, init);
    // A restarted service accepts neither its earlier nor our earlier token.
    if (response.status === 401 && upload === undefined) {
      const other = await this.#credential.findOtherToken(address);
      if (other !== null) {
        await response.body?.cancel();
        response = await this.#send(url, other, init);
      }
    }
    if (response.ok) return response;
    const problem = await readProblem(response);
    throw response.status === 401 && token === null ? this.#credential.explainMissingToken(address) : problem;
  }

  /** Sends a body with a token to a path outside of the API, and returns the response. */
  async post(path: string, headers: Record<string, string>, body: string): Promise<Response> {
    this.#credential.check();
    const address = await this.url();
    const token = await this.#credential.token(address);
    return await this.#send(new URL(address + path), token, { method: "POST", headers, body });
  }

  async #send(url: URL, token: string | null, init: RequestInit): Promise<Response> {
    const request = new Request(url, { ...init, signal: this.#io.signal });
    if (token !== null) request.headers.set("authorization", `Bearer ${token}`);
    // The trace that this command is a part of, as of a run. The service reads only a valid one.
    const trace = this.#io.env.TRACEPARENT;
    if (trace !== undefined && /^[!-~]+$/.test(trace)) request.headers.set("traceparent", trace);
    return await this.#transport.send(request, url);
  }

  /** Whether an expired token can be renewed. Only a login's token can. */
  get canRenew(): boolean {
    return this.#credential.canRenew;
  }

  /** Returns the address of the server. Throws like findServerUrl(). */
  async url(): Promise<string> {
    return this.#url ??= await findServerUrl(this.#io, () => this.#configuration());
  }

  /** Checks without a token whether the service is ready. Throws `unavailable` after `waitMs` without a response. */
  async isReady(waitMs: number): Promise<boolean> {
    const url = new URL(`${await this.url()}/readyz`);
    const response = await this.#transport.send(
      new Request(url, { signal: AbortSignal.timeout(waitMs) }),
      url,
    );
    await response.body?.cancel();
    return response.ok;
  }

  async #configuration(): Promise<ClientConfig> {
    return this.#config ??= await readClientConfig(this.#flags.config, this.#io.env);
  }
}

/** Fills the parameters into a path. An empty one would be another route, and `.` cannot be sent (facts, Deno 8). */
function fillPath(path: string, params: Record<string, string>): string {
  return path.replace(/:(\w+)/g, (_match, name: string) => {
    const value = params[name] ?? "";
    if (value === "") throw usageError(`the ${name} must not be empty`);
    if (value === "." || value === "..") throw usageError(`the ${name} cannot be ${JSON.stringify(value)}`);
    return encodeURIComponent(value.toWellFormed());
  });
}
