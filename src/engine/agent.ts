import { UnsafePathError } from "../base/files/open_directory.ts";
import { findAgentProblem, probeAgent } from "./availability.ts";
import type { EngineConfig } from "./config.ts";
import {
  buildFailedOutcome,
  buildSpawnOutcome,
  describeStop,
  type Engine,
  type EngineOutcome,
  type EngineRun,
  type Machine,
} from "./engine.ts";
import { resolveKeepAlive } from "./keep_alive.ts";
import { type AgentSetup, createSessionId, type TurnRequest } from "./launch.ts";
import { SpawnError } from "./process/process.ts";
import { getUsageBefore, type TurnResult } from "./agent_turn.ts";
import { ProcessPool } from "./process_pool.ts";
import type { Adapter, EngineFailure, EngineFailureKind, Order } from "./protocol/adapter.ts";
import {
  buildFailure,
  classifyEnd,
  classifyFailure,
  formatLastLines,
  isSessionUnknown,
} from "./protocol/failure.ts";
import { findProcessZone } from "./protocol/reset_zone.ts";
import { cutResult } from "./result.ts";
import { findAgentServerFault } from "./server_scripts.ts";
import type { Failure } from "../domain/call/vocabulary.ts";

/** Builds an engine from an agent CLI. All agents share this driver; an adapter has the differences (facts, engines 12). */
export function buildAgentEngine(
  name: string,
  config: EngineConfig,
  machine: Machine,
  adapter: Adapter,
): Engine {
  const setup = { config, machine, adapter };
  const keepAlive = adapter.open === undefined ? null : resolveKeepAlive(config, machine.keepAlive);
  const pool = new ProcessPool(setup, keepAlive);
  return {
    name,
    kind: adapter.kind,
    config,
    external: true,
    agent: true,
    reportsLiveUsage: adapter.reportsLiveUsage ?? false,
    reportsCost: adapter.reportsCost ?? false,
    idleMax: keepAlive?.warm.max ?? 0,
    inheritedVariables: listInherited(config, adapter),
    adapterVariables: listAdapterVariables(setup),
    steers: (keepAlive !== null || config.permissions === "ask") && adapter.open?.steers === true,
    skillFault: adapter.readsFiles?.(config.permissions) === false
      ? `the engine ${name} reads no files with permissions: ${config.permissions}`
      : null,
    findServerFault: (servers) => findAgentServerFault(name, setup, servers),
    findProblem: (stateDir) => findAgentProblem(name, setup, stateDir),
    probe: (stateDir) => probeAgent(name, setup, stateDir),
    start: (run) => runAgent(setup, run, pool),
    release: (workerId) => pool.release(workerId),
  };
}

const KEY_NAME = /_(KEY|TOKEN)$/;

// A run that uses a gateway gets no login of the provider.
function listInherited({ gateway, pass_env }: EngineConfig, { variables, login }: Adapter): string[] {
  if (gateway === undefined) return [...variables, ...login.variables, ...pass_env];
  return [...variables.filter((name) => !KEY_NAME.test(name)), ...pass_env];
}

// An order that makes an adapter set every variable that it may set.
const SAMPLE_ORDER: Order = {
  ...{
    sessionId: "session",
    resume: false,
    prompt: "",
    workDir: "/work",
    runDir: "/run",
    inputDir: "/run",
    outputDir: "/run",
    stateDir: "/state",
  },
  ...{
    ctl: "svc",
    model: "model",
    permissions: "full",
    askTimeoutMs: 1_000,
    mask: (text) => text,
    extraArgs: [],
    root: true,
    env: {},
    schema: null,
    gateway: null,
    servers: [],
    skills: null,
  },
  tools: { url: "http://localhost/mcp", tokenVariable: "SVC_TOKEN", token: "" },
};

function listAdapterVariables({ adapter, config: { gateway: name }, machine }: AgentSetup): string[] {
  const { open } = adapter;
  const kind = name === undefined ? undefined : machine.gateways[name];
  const gateway = kind === undefined ? null : { kind, url: "http://localhost/gateway/name", key: "key" };
  const order = { ...SAMPLE_ORDER, gateway };
  const commands = [adapter.buildCommand(order), ...(open === undefined ? [] : [open.buildCommand(order)])];
  return [...new Set(commands.flatMap(({ env, fixedEnv = {} }) => Object.keys({ ...env, ...fixedEnv })))];
}

// The first start, a second one for a lost session, and a third one for a session whose id is in use.
const STARTS_MAX = 3;

async function runAgent(setup: AgentSetup, run: EngineRun, pool: ProcessPool): Promise<EngineOutcome> {
  const { adapter } = setup;
  let request: TurnRequest = run.session === null
    ? { sessionId: createSessionId(adapter), resume: false, prompt: run.prompt }
    : { sessionId: run.session.id, resume: true, prompt: run.prompt };
  try {
    for (let turns = 1;; turns++) {
      const result = await pool.run(run, request);
      if (result === null) return buildAbortedOutcome(setup, run, request);
      const next = turns < STARTS_MAX ? planNextRequest(adapter, run, result) : null;
      if (next === null) return placeReset(buildOutcome(setup, result), run);
      request = next;
    }
  } catch (error) {
    if (error instanceof UnsafePathError) return buildFailedOutcome("isolation", error.message);
    if (!(error instanceof SpawnError)) throw error;
    return buildSpawnOutcome(error, `Cannot start ${adapter.kind}: ${error.message}`);
  }
}

/** Returns the next turn after the engine refused its session, or null when none is needed. */
function planNextRequest(adapter: Adapter, run: EngineRun, result: TurnResult): TurnRequest | null {
  const { request, finished, openedOtherSession } = result;
  if (run.signal.aborted || !finished) return null;
  const failure = openedOtherSession ? "unknown_session" : findFailure(adapter, result)?.kind;
  if (failure === "unknown_session" && request.resume) {
    run.log.line("[the engine lost the session; a new one starts with the earlier conversation]");
    return { sessionId: createSessionId(adapter), resume: false, prompt: run.retelling };
  }
  if (failure === "session_exists" && !request.resume) {
    run.log.line("[the session exists already, so it is resumed]");
    return { ...request, resume: true };
  }
  return null;
}

/** Returns the failure of a finished turn, or null. */
function findFailure(adapter: Adapter, result: TurnResult): EngineFailure | null {
  const { request, end, output } = result;
  const { done, failure, stderr, acted } = output;
  const lost = findLostSession(adapter, result);
  if (lost !== "") return buildFailure("unknown_session", lost);
  if (done !== null) {
    return failure ?? (done.ok ? null : classifyFailure(output.said || formatLastLines(stderr), "model"));
  }
  if (failure !== null) return failure;
  if (end.code === 0) {
    return buildFailure("crashed", `it ended without a final event: ${formatLastLines(stderr)}`);
  }
  // A turn that has acted is not run again: its stderr also has the words of tools.
  return classifyEnd(adapter.endings, stderr, request.resume && !acted);
}

// An engine may report a lost session only on stderr, whatever its final event and exit code are.
function findLostSession({ endings }: Adapter, { request, output }: TurnResult): string {
  const { failure, acted, unknownSession } = output;
  if (!request.resume || acted || failure?.kind === "auth" || failure?.kind === "rate_limited") return "";
  return unknownSession ||
    (failure !== null && isSessionUnknown(endings, failure.words) ? failure.words : "");
}

/**
 * Builds the outcome. The service's cancel or limit decides first, then the engine's final event, then the exit code (facts, engines
 * 2.4).
 */
function buildOutcome({ config, adapter }: AgentSetup, result: TurnResult): EngineOutcome {
  const { request, end, output, finished } = result;
  const rest = {
    text: cutResult(output.text),
    usage: output.usage.run,
    engineUse: output.hasSpoken ? "acted" as const : "" as const,
    // An engine that reports no session has resumed the requested one.
    sessionId: output.session || (request.resume ? request.sessionId : ""),
    sessionUsage: output.usage.session,
  };
  if (!finished) return { ...buildFailedOutcome(...describeStop(end.reason, config), end.code), ...rest };
  const failure = findFailure(adapter, result);
  if (failure !== null) {
    const { kind, reset } = failure;
    const words = kind === "auth" ? `${failure.words} (${adapter.login.advice})` : failure.words;
    const isUnusable = kind === "auth" && !output.hasSpoken;
    return {
      ...buildFailedOutcome(FAILURES[kind], `${kind}: ${words}`, end.code),
      ...rest,
      ...(isUnusable ? { engineUse: "unusable" } : {}),
      reset,
    };
  }
  // A run without text and tool calls is not a success.
  if (!output.acted) {
    return { ...buildFailedOutcome("engine_error", "crashed: it said and did nothing", end.code), ...rest };
  }
  return { ...buildFailedOutcome("exit_code", "", end.code), status: "completed", failure: "", ...rest };
}

// An engine writes times in the time zone of its process, unless the text names another zone.
function placeReset(outcome: EngineOutcome, { env }: EngineRun): EngineOutcome {
  const { reset } = outcome;
  const zone = findProcessZone(env.TZ);
  if (reset === null || !("cron" in reset) || reset.zone !== undefined || zone === null) return outcome;
  return { ...outcome, reset: { ...reset, zone } };
}

function buildAbortedOutcome(
  { config }: AgentSetup,
  run: EngineRun,
  request: TurnRequest,
): EngineOutcome {
  return {
    ...buildFailedOutcome(...describeStop("aborted", config), 0),
    sessionId: request.resume ? request.sessionId : "",
    sessionUsage: getUsageBefore(run, request),
  };
}

const FAILURES: Record<EngineFailureKind, Failure> = {
  unknown_session: "engine_error",
  session_exists: "engine_error",
  auth: "engine_error",
  rate_limited: "rate_limited",
  model: "engine_error",
  setup: "engine_error",
  unsupported: "setup",
  crashed: "exit_code",
};
