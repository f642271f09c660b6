import { bypassProxy } from "../../src/base/proxy.ts";
import { type ErrorCode, ServiceError } from "../../src/domain/call/error.ts";
import { explainConnectionError, openTrustingClient } from "./connection.ts";
import type { Io } from "../terminal/io.ts";

/** Sends requests with the trusted certificates, and explains connection errors. */
export class Transport {
  readonly #io: Io;
  readonly #ca: string | undefined;
  #trusting: { client?: Deno.HttpClient } | null = null;
  #isDirect = false;

  constructor(io: Io, ca: string | undefined) {
    this.#io = io;
    this.#ca = ca;
  }

  /** Makes later requests to a host connect without a proxy, even if the environment names one. */
  connectDirectly(host: string): void {
    if (this.#isDirect) return;
    bypassProxy(host.replace(/^\[(.*)\]$/, "$1"));
    this.#isDirect = true;
    // An HTTP client reads the environment when it is created.
    this.#trusting = null;
  }

  /** Throws ServiceError `unavailable` without a response. */
  async send(request: Request, url: URL): Promise<Response> {
    this.#trusting ??= await this.#certificates();
    const { client } = this.#trusting;
    try {
      return await (client === undefined ? fetch(request) : fetch(request, { client }));
    } catch (error) {
      if (this.#io.signal.aborted) throw error;
      throw explainConnectionError(error, url, Boolean(this.#io.env.SVC_RUN_ID));
    }
  }

  /** Sends a JSON body without a token, such as a login, and returns the JSON. Throws the server's error. */
  async post<T>(address: string, path: string, body: object): Promise<T> {
    const url = new URL(address + path);
    const headers = { "content-type": "application/json" };
    const request = new Request(url, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal: this.#io.signal,
    });
    const response = await this.send(request, url);
    if (!response.ok) throw await readProblem(response);
    const text = await response.text();
    return text === "" ? undefined as T : parseJson(text, response) as T;
  }

  async #certificates(): Promise<{ client?: Deno.HttpClient }> {
    const { SVC_CA_FILE } = this.#io.env;
    if (this.#ca !== undefined) return { client: await openTrustingClient(this.#ca, "--ca") };
    if (SVC_CA_FILE) return { client: await openTrustingClient(SVC_CA_FILE, "SVC_CA_FILE") };
    return this.#isDirect ? { client: Deno.createHttpClient({}) } : {};
  }
}

/** Parses a JSON response. Throws if another program sent it. */
export function parseJson(json: string, response: Response) {
  try {
    return JSON.parse(json);
  } catch {
    throw describeForeignServer(response.status);
  }
}

function describeForeignServer(status: number): ServiceError {
  const code = status === 503 || status === 502 ? "unavailable" : "internal";
  return new ServiceError(
    code,
    `Cannot read the response with status ${status}: another program may use this address. Check SVC_URL.`,
  );
}

/** An error with its problem document. */
export class Problem extends ServiceError {
  readonly json: string;

  constructor(code: ErrorCode, detail: string, json: string) {
    super(code, detail);
    this.json = json;
  }

  /** Replaces names of fields by the flags that set them, with the part of the value. `json` stays unchanged. */
  named(flagOf: (field: string) => string | null): Problem {
    const fields: { path: string }[] = JSON.parse(this.json).errors ?? [];
    const words = fields.reduce((said, { path }) => {
      const flag = path === "" ? null : flagOf(path);
      const parts = path.split(".").slice(1).filter((part) => !/^\d+$/.test(part));
      return flag === null
        ? said
        : said.replace(`${path}: `, `${[flag, parts.join(".")].join(" ").trim()}: `);
    }, this.message);
    return this.reworded(words);
  }

  /** Returns the problem with other words. `json` stays unchanged. */
  reworded(words: string): Problem {
    return new Problem(this.code, words, this.json);
  }
}

/** Reads the error of a refused request. */
export async function readProblem(response: Response): Promise<ServiceError> {
  const json = await response.text();
  try {
    const { code, detail } = JSON.parse(json);
    if (typeof code === "string" && typeof detail === "string") {
      return new Problem(code as ErrorCode, detail, json);
    }
  } catch {
    // Another program sent the response.
  }
  return describeForeignServer(response.status);
}
