// The route /gateway/<name>/...: a proxy for runs, which adds a secret that they never hold (contract-3 22)
import type { IncomingMessage } from "node:http";
import type { GatewayRequest, Gateways } from "../../api/call/gateways.ts";
import type { Clock } from "../../base/clock.ts";
import { ServiceError } from "../../domain/call/error.ts";
import {
  type GatewayTarget,
  isAllowed,
  isMetered,
  parseGatewayTarget,
} from "../../domain/workers/gateway.ts";
import type { App, AppContext } from "../app_types.ts";
import { readBody } from "../input.ts";
import { toProblem } from "../problem.ts";
import { BodyBudget, type CountedBody } from "../server/body_budget.ts";
import { getRawTarget, watchClient } from "../server/exchange.ts";
import { openIncomingBody } from "../server/incoming_body.ts";
import { type AnswerWatcher, openAnswer } from "./answer_stream.ts";
import { pickAnswerHeaders, pickRequestHeaders, readGatewayToken } from "./headers.ts";
import { estimateRequest, Meter, UNWATCHED } from "./meter.ts";
import {
  buildForeignError,
  checkJsonObject,
  type ModelRequest,
  prepareOpenAiRequest,
} from "./model_request.ts";
import { sendUpstream } from "./upstream.ts";

/** The JSON of a request to a model. */
const GATEWAY_JSON_MAX_BYTES = 32 * 1024 * 1024;
/** The JSON of all requests to models that are arriving or waiting for an answer. */
const GATEWAY_BODIES_MAX_BYTES = 256 * 1024 * 1024;

interface GatewayDeps {
  gateways: Gateways;
  clock: Clock;
}

/** Mounts the gateways, before every other route: their paths are matched as the client wrote them. */
export function mountGateway(app: App, deps: GatewayDeps): void {
  const bodies = new BodyBudget(GATEWAY_BODIES_MAX_BYTES, "requests to models");
  app.use(async (c, next) => {
    const target = parseGatewayTarget(getRawTarget(c.req.raw));
    if (target === null) return await next();
    try {
      return await answerRequest(deps, bodies, c, target);
    } catch (error) {
      const problem = toProblem(error, c.get("requestId"));
      // Another try would get the same answer, and the clients of models try often.
      if (error instanceof ServiceError && error.code === "budget") {
        problem.headers.set("x-should-retry", "false");
      }
      return problem;
    }
  });
}

async function answerRequest(
  { gateways, clock }: GatewayDeps,
  bodies: BodyBudget,
  c: AppContext,
  target: GatewayTarget,
): Promise<Response> {
  const request = c.req.raw;
  const token = readGatewayToken(request);
  if (token === null) {
    throw new ServiceError(
      "unauthenticated",
      "Cannot authenticate: the request has no token. Send the run's token (SVC_TOKEN) as Authorization: Bearer or as x-api-key.",
    );
  }
  const open = await gateways.open(token, target.name);
  c.env.onCaller?.(open.caller);
  const counted = bodies.open();
  let isStreaming = false;
  const close = () => {
    counted.close();
    open.close();
  };
  try {
    gateways.note(open, { requests: 1 });
    const exchange = { gateways, clock, request, target, open, counted };
    const answer = await send(exchange, close);
    isStreaming = true;
    return answer;
  } catch (error) {
    const isRefused = error instanceof ServiceError && ["forbidden", "budget"].includes(error.code);
    if (isRefused) gateways.note(open, { refused: 1 });
    throw error;
  } finally {
    if (!isStreaming) close();
  }
}

interface Exchange extends GatewayDeps {
  request: Request;
  target: GatewayTarget;
  open: GatewayRequest;
  counted: CountedBody;
}

async function send(exchange: Exchange, close: () => void): Promise<Response> {
  const { gateways, clock, request, target, open } = exchange;
  const { gateway } = open;
  const signal = AbortSignal.any([open.signal, watchClient(request)]);
  checkRequest(exchange);
  const isJson = /^application\/json\b/i.test(request.headers.get("content-type") ?? "");
  const isModel = isMetered(gateway, { method: request.method, segments: target.segments ?? [], isJson });
  const model = isModel ? await readModelRequest(exchange) : null;
  const headers = pickRequestHeaders(request);
  if (model !== null) {
    await gateways.checkBudgets(open);
    Object.assign(headers, { "accept-encoding": "identity", "content-length": String(model.body.length) });
  }
  const [name, value] = await gateways.buildHeader(gateway);
  const message = await sendUpstream({
    upstream: gateway.upstream,
    rest: target.rest,
    method: request.method,
    headers: { ...headers, [name]: value },
    body: model === null ? openIncomingBody(request, clock) : model.body,
    signal,
  }).catch(async (error) => {
    // The provider may have read all of the request.
    if (model !== null && signal.aborted) await gateways.count(open, estimateRequest(model.body.length));
    throw error;
  });
  const watcher = model === null ? UNWATCHED : buildWatcher(exchange, model, message);
  return buildResponse(request, message, { watcher, signal, onEnd: close });
}

function checkRequest({ gateways, request, target, open }: Exchange): void {
  const { segments } = target;
  if (request.headers.has("upgrade")) {
    throw new ServiceError(
      "upgrade_required",
      "Cannot upgrade the connection: a gateway passes plain HTTP only",
    );
  }
  if (segments === null) {
    throw new ServiceError(
      "forbidden",
      "Cannot pass this path on: it has an empty segment, a dot segment, or an encoded slash, backslash or NUL",
    );
  }
  if (!isAllowed(open.gateway, request.method, segments)) {
    throw new ServiceError(
      "forbidden",
      `Cannot pass ${request.method} on: gateways.${open.gateway.name}.allow does not name this method and path`,
    );
  }
  const [, noun, id] = segments;
  const isForeign = open.gateway.kind === "openai" && noun === "responses" && id !== undefined &&
    !gateways.hasResponse(open, id);
  if (isForeign) throw buildForeignError("this response");
}

async function readModelRequest(
  { gateways, clock, request, target, open, counted }: Exchange,
): Promise<ModelRequest> {
  if ((request.headers.get("content-encoding") ?? "identity") !== "identity") {
    throw new ServiceError(
      "unsupported_media_type",
      "Cannot read the body: send it without content-encoding",
    );
  }
  const bytes = await readBody(request, GATEWAY_JSON_MAX_BYTES, clock, counted);
  if (open.gateway.kind === "openai") {
    const path = (target.segments ?? []).join("/");
    return prepareOpenAiRequest(bytes, `/${path}`, (id) => gateways.hasResponse(open, id));
  }
  checkJsonObject(bytes);
  return { body: bytes, addsUsage: false };
}

function buildWatcher(
  { gateways, open }: Exchange,
  model: ModelRequest,
  message: IncomingMessage,
): AnswerWatcher {
  // Providers bill no failed request.
  if ((message.statusCode ?? 0) >= 300) return UNWATCHED;
  const isPlain = (message.headers["content-encoding"] ?? "identity") === "identity";
  return new Meter({
    requestBytes: model.body.length,
    dropsExtra: model.addsUsage,
    isStream: !isPlain || /^text\/event-stream\b/i.test(message.headers["content-type"] ?? ""),
    note: (tokens) => gateways.note(open, tokens),
    count: (tokens) => gateways.count(open, tokens),
    onResponse: (id) => gateways.noteResponse(open, id),
  });
}

const WITHOUT_BODY = [204, 205, 304];

function buildResponse(
  { method }: Request,
  message: IncomingMessage,
  options: { watcher: AnswerWatcher; signal: AbortSignal; onEnd: () => void },
): Response {
  const { statusCode: status = 0 } = message;
  const headers = pickAnswerHeaders(message);
  if (status < 200 || status > 599) {
    message.destroy();
    throw new ServiceError("bad_gateway", `Cannot pass the answer on: its status is ${status}`);
  }
  if (method === "HEAD" || WITHOUT_BODY.includes(status)) {
    message.resume();
    options.onEnd();
    return new Response(null, { status, headers });
  }
  return new Response(openAnswer(message, options), { status, headers });
}
