// Acts as the service for one runner: checks each request against the schemas of the service, and answers as a case scripts.
import { z } from "zod";
import {
  LOG_CHUNK_MAX_BYTES,
  REPO_CHUNK_MAX_BYTES,
  type RunEnd,
  runEndSchema,
  runEventsSchema,
  runLogQuery,
  type RunnerBeat,
  runnerBeatSchema,
  type RunnerClaim,
  runnerClaimSchema,
  type RunRepoPart,
  runRepoQuery,
  type RunReport,
  type WireOrder,
} from "../../../src/domain/workers/runner.ts";

export type RequestKind = "claim" | "beat" | "log" | "events" | "end" | "media" | "repo" | "commits";

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
  /** The bundle with its commits. */
  commits: Uint8Array;
}

const METHODS: Partial<Record<RequestKind, string>> = { media: "GET", repo: "GET", commits: "PUT" };
const NONE = new Uint8Array();

const REQUEST_PATH =
  /^\/api\/(?:runners\/(claim|beat)|runs\/([0-9a-f-]{36})\/(log|events|end|media|repo)(?:\/([^/]+))?)$/;

export class ConformanceService implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** Faults of requests, which fail the case. */
  readonly faults: string[] = [];
  readonly runs = new Map<string, ServedRun>();
  /** Orders that no claim has got. */
  readonly waiting: WireOrder[] = [];
  readonly files = new Map<string, string>();
  /** The bundles of branches by run. */
  readonly bundles = new Map<string, Uint8Array>();
  times = { lease_ms: 120_000, beat_ms: 200, margin_ms: 20_000 };
  /** Decides about a request before the service takes it. `count` is the number of requests of its kind so far. */
  interfere: (request: SeenRequest, count: number) => Interference | Promise<Interference> = () => null;
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
    const kind = (part === "repo" && request.method === "PUT" ? "commits" : call ?? part) as
      | RequestKind
      | undefined;
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (kind === undefined || request.method !== (METHODS[kind] ?? "POST")) {
      this.faults.push(`unknown request ${request.method} ${url.pathname}`);
      return buildProblem(404, "not_found");
    }
    if (request.headers.get("authorization") !== `Bearer ${TOKEN}`) this.faults.push(`${kind}: wrong token`);
    const body = this.#parse(kind, { request, url, bytes });
    const seen: SeenRequest = { kind, run, body, at: Date.now() };
    this.requests.push(seen);
    if (body === undefined) return buildProblem(400, "invalid_request");
    const action = await this.interfere(seen, this.list(kind).length);
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
    if (kind === "media" || kind === "repo") return null;
    const type = request.headers.get("content-type") ?? "";
    const isBytes = kind === "log" || kind === "commits";
    const wanted = isBytes ? "application/octet-stream" : "application/json";
    if (!type.startsWith(wanted)) this.faults.push(`${kind}: content type ${JSON.stringify(type)}`);
    if (kind === "log" && bytes.length > LOG_CHUNK_MAX_BYTES) this.faults.push("log: part too large");
    if (kind === "commits" && bytes.length > REPO_CHUNK_MAX_BYTES) {
      this.faults.push("commits: part too large");
    }
    const schema = {
      claim: runnerClaimSchema,
      beat: runnerBeatSchema,
      events: runEventsSchema,
      end: runEndSchema,
      log: z.strictObject(runLogQuery),
      commits: z.strictObject(runRepoQuery),
    }[kind];
    const text = new TextDecoder().decode(bytes);
    try {
      return schema.parse(isBytes ? Object.fromEntries(url.searchParams) : JSON.parse(text));
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
    if (kind === "repo") return this.#sendBundle(id);
    const { epoch } = body as { epoch: number };
    if (epoch !== this.epoch) return buildProblem(409, "conflict");
    if (run.ends.length > 0 && kind !== "end") {
      this.faults.push(`${kind}: sent after the end was stored`);
      return buildProblem(409, "conflict");
    }
    if (kind === "log") return this.#takeLog(run, Number(url.searchParams.get("offset")), bytes, url);
    if (kind === "commits") return this.#takeCommits(run, body as RunRepoPart, bytes);
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
    if (!this.runs.has(id)) {
      this.runs.set(id, { order, log: new Uint8Array(), reports: [], ends: [], commits: NONE });
    }
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
    run.log = appendPart(run.log, offset, bytes);
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

  #sendBundle(id: string): Response {
    const bundle = this.bundles.get(id);
    if (bundle === undefined) return buildProblem(404, "not_found");
    return new Response(bundle as Uint8Array<ArrayBuffer>, {
      headers: { "content-type": "application/octet-stream" },
    });
  }

  #takeCommits(run: ServedRun, { offset, size }: RunRepoPart, bytes: Uint8Array): Response {
    if (offset > run.commits.length) this.faults.push(`commits: offset ${offset} is beyond the last answer`);
    run.commits = appendPart(run.commits, offset, bytes);
    if (run.commits.length > size) this.faults.push(`commits: more bytes than ${size}`);
    return Response.json({ size: run.commits.length });
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

/** Adds the new bytes of a part. */
function appendPart(all: Uint8Array, offset: number, bytes: Uint8Array): Uint8Array {
  const size = all.length;
  if (offset > size || offset + bytes.length <= size) return all;
  const grown = new Uint8Array(offset + bytes.length);
  grown.set(all);
  grown.set(bytes.subarray(size - offset), size);
  return grown;
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
