// Acts as the service for one runner: checks each request against the schemas of the service, and answers as a case scripts.
import { z } from "zod";
import {
  LOG_CHUNK_MAX_BYTES,
  type RunEnd,
  runEndSchema,
  runEventsSchema,
  runLogQuery,
  type RunnerBeat,
  runnerBeatSchema,
  type RunnerClaim,
  runnerClaimSchema,
  type RunReport,
  type WireOrder,
} from "../../../src/domain/workers/runner.ts";

export type RequestKind = "claim" | "beat" | "log" | "events" | "end" | "media";

export const TOKEN = "conformance-token";

/** A claim waits this long, so that a runner does not claim all the time. */
const CLAIM_WAIT_MS = 500;

/** A request of the runner, in the order of arrival. */
export interface SeenRequest {
  kind: RequestKind;
  /** Execution id; "" for claim and beat. */
  run: string;
  body: unknown;
  at: number;
}

/** The action of a case on a request: an answer, or a cut connection before or after the service has stored it. */
export type Interference = Response | "cut" | "cut after" | "hang" | null;

/** A run as the service knows it. */
export interface ServedRun {
  order: WireOrder;
  log: Uint8Array;
  reports: RunReport[];
  ends: RunEnd[];
}

const REQUEST_PATH =
  /^\/api\/(?:runners\/(claim|beat)|runs\/([0-9a-f-]{36})\/(log|events|end|media)(?:\/([^/]+))?)$/;

export class ConformanceService implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** Faults of requests, which fail the case. */
  readonly faults: string[] = [];
  readonly runs = new Map<string, ServedRun>();
  /** Orders that no claim has got. */
  readonly waiting: WireOrder[] = [];
  readonly files = new Map<string, string>();
  times = { lease_ms: 120_000, beat_ms: 200, margin_ms: 20_000 };
  /** Decides about a request before the service takes it. `count` is the number of requests of its kind so far. */
  interfere: (request: SeenRequest, count: number) => Interference = () => null;
  /** Returns the text of `stop` for a run, or null when the run is no longer the runner's. */
  stopFor: (run: string) => string | null = () => "";
  /** Changes the size that the service answers to a log. */
  changeLog: (run: ServedRun, offset: number) => void = () => {};
  epoch = 0;
  #process = "";
  readonly #answered = new Map<string, WireOrder>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #closing = new AbortController();

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {}, onError: () => new Response(null, { status: 500 }) },
      (request) => this.#serve(request),
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Lists the requests of a kind. */
  list(kind: RequestKind): SeenRequest[] {
    return this.requests.filter((request) => request.kind === kind);
  }

  /** Lists the claims. */
  get claims(): RunnerClaim[] {
    return this.list("claim").map(({ body }) => body as RunnerClaim);
  }

  async #serve(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const [, call, run = "", part, name = ""] = REQUEST_PATH.exec(url.pathname) ?? [];
    const kind = (call ?? part) as RequestKind | undefined;
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (kind === undefined || request.method !== (kind === "media" ? "GET" : "POST")) {
      this.faults.push(`unknown request ${request.method} ${url.pathname}`);
      return buildProblem(404, "not_found");
    }
    if (request.headers.get("authorization") !== `Bearer ${TOKEN}`) this.faults.push(`${kind}: wrong token`);
    const body = this.#parse(kind, { request, url, bytes });
    const seen: SeenRequest = { kind, run, body, at: Date.now() };
    this.requests.push(seen);
    if (body === undefined) return buildProblem(400, "invalid_request");
    const action = this.interfere(seen, this.list(kind).length);
    if (action instanceof Response) return action;
    if (action === "hang") return await this.#hang();
    if (action === "cut") return cutConnection();
    const answer = await this.#take(seen, { url, bytes, name });
    return action === "cut after" ? cutConnection() : answer;
  }

  #parse(
    kind: RequestKind,
    { request, url, bytes }: { request: Request; url: URL; bytes: Uint8Array },
  ): unknown {
    if (kind === "media") return null;
    const type = request.headers.get("content-type") ?? "";
    const wanted = kind === "log" ? "application/octet-stream" : "application/json";
    if (!type.startsWith(wanted)) this.faults.push(`${kind}: content type ${JSON.stringify(type)}`);
    if (kind === "log" && bytes.length > LOG_CHUNK_MAX_BYTES) this.faults.push("log: part too large");
    const schema = {
      claim: runnerClaimSchema,
      beat: runnerBeatSchema,
      events: runEventsSchema,
      end: runEndSchema,
      log: z.strictObject(runLogQuery),
    }[kind];
    const text = new TextDecoder().decode(bytes);
    try {
      return schema.parse(kind === "log" ? Object.fromEntries(url.searchParams) : JSON.parse(text));
    } catch (error) {
      this.faults.push(`${kind}: ${error instanceof z.ZodError ? z.prettifyError(error) : error}`);
      return undefined;
    }
  }

  async #hang(): Promise<Response> {
    await waitForAbort(this.#closing.signal);
    return new Response(null, { status: 503 });
  }

  async #take(
    { kind, run: id, body }: SeenRequest,
    { url, bytes, name }: { url: URL; bytes: Uint8Array; name: string },
  ): Promise<Response> {
    if (kind === "claim") return await this.#takeClaim(body as RunnerClaim);
    if (kind === "beat") return this.#takeBeat(body as RunnerBeat);
    const run = this.runs.get(id);
    if (run === undefined) return buildProblem(409, "conflict");
    if (kind === "media") return this.#sendFile(run, decodeURIComponent(name));
    const { epoch } = body as { epoch: number };
    if (epoch !== this.epoch) return buildProblem(409, "conflict");
    if (run.ends.length > 0 && kind !== "end") {
      this.faults.push(`${kind}: sent after the end was stored`);
      return buildProblem(409, "conflict");
    }
    if (kind === "log") return this.#takeLog(run, Number(url.searchParams.get("offset")), bytes, url);
    if (kind === "events") return this.#takeEvents(run, (body as { events: RunReport[] }).events);
    run.ends.push(body as RunEnd);
    return Response.json({ status: "stored" });
  }

  async #takeClaim(claim: RunnerClaim): Promise<Response> {
    if (claim.process !== this.#process) {
      if (claim.epoch !== 0) return buildProblem(409, "conflict");
      this.#process = claim.process;
      this.epoch++;
    }
    if (claim.protocol !== 1) this.faults.push(`claim: protocol ${claim.protocol}`);
    const until = Date.now() + Math.min(CLAIM_WAIT_MS, claim.wait_ms);
    while (this.waiting.length === 0 && !this.#answered.has(claim.request_id) && Date.now() < until) {
      await pause(20);
    }
    const order = this.#answered.get(claim.request_id) ?? this.waiting.shift();
    if (order !== undefined) this.giveOrder(claim.request_id, order);
    return Response.json({ epoch: this.epoch, version: "conformance", ...this.times, run: order ?? null });
  }

  /** Stores that a claim got an order. */
  giveOrder(requestId: string, order: WireOrder): void {
    const { execution_id: id } = order.execution;
    this.#answered.set(requestId, order);
    if (!this.runs.has(id)) this.runs.set(id, { order, log: new Uint8Array(), reports: [], ends: [] });
  }

  #takeBeat({ process, epoch, running }: RunnerBeat): Response {
    if (process !== this.#process || epoch !== this.epoch) return buildProblem(409, "conflict");
    const runs = running.flatMap((id) => {
      const stop = this.runs.has(id) ? this.stopFor(id) : null;
      return stop === null ? [] : [{ id, waited_ms: 0, stop }];
    });
    return Response.json({ runs });
  }

  #takeLog(run: ServedRun, offset: number, bytes: Uint8Array, url: URL): Response {
    if (url.searchParams.get("kind") === "events") return Response.json({ size: offset + bytes.length });
    this.changeLog(run, offset);
    const size = run.log.length;
    if (offset <= size && offset + bytes.length > size) {
      const grown = new Uint8Array(offset + bytes.length);
      grown.set(run.log);
      grown.set(bytes.subarray(size - offset), size);
      run.log = grown;
    }
    return Response.json({ size: run.log.length });
  }

  #takeEvents(run: ServedRun, events: RunReport[]): Response {
    for (const event of events) {
      const last = run.reports.at(-1)?.no ?? 0;
      if (event.no > last + 1) this.faults.push(`events: number ${event.no} follows ${last}`);
      if (event.no > last) run.reports.push(event);
    }
    return Response.json({ status: "stored" });
  }

  #sendFile({ order }: ServedRun, name: string): Response {
    const text = this.files.get(name);
    if (text === undefined || !order.files.includes(name)) return buildProblem(404, "not_found");
    return new Response(text, { headers: { "content-type": "application/octet-stream" } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#server.shutdown();
  }
}

/** Builds a refusal as only the service sends it. */
export function buildProblem(status: number, code: string): Response {
  return Response.json({ type: `about:blank#${code}`, title: code, status, code, detail: code }, {
    status,
    headers: { "content-type": "application/problem+json" },
  });
}

/** Builds an answer that stops in the middle, so that the client sees a broken connection. */
function cutConnection(): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("{"));
    },
    pull: (controller) => controller.error(new Error("cut")),
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
