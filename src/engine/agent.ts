import type { EngineConfig } from "./config.ts";
import type { Adapter, EngineFailure, EngineFailureKind } from "./protocol/adapter.ts";
import { splitArgs } from "./arguments.ts";
import { type Ran, runAgentProcess } from "./agent_process.ts";
import type { AgentParts, Start } from "./launch.ts";
import { probeAgent } from "./availability.ts";
import { type Engine, type EngineOutcome, type EngineRun, failedOutcome, type Machine } from "./engine.ts";
import { endedByUs } from "./ended_by_us.ts";
import { failureFrom, failureOfKind, lastWords } from "./protocol/failure.ts";
import { SpawnError } from "./process/process.ts";
import { cutResult } from "./result.ts";
import { staysOf } from "./keep_alive.ts";
import { WarmPool } from "./process_pool.ts";
import { hasConversation } from "../domain/message.ts";
import type { Failure } from "../domain/vocabulary.ts";

/** An agent CLI as an engine. This driver is the same for all; the differences are in the adapters (facts, engines 12). */
export function agentEngine(name: string, config: EngineConfig, machine: Machine, adapter: Adapter): Engine {
  const parts = { config, machine, adapter };
  const { open } = adapter;
  const stays = open === undefined ? null : staysOf(config, machine.stays);
  const pool = open === undefined || stays === null ? null : new WarmPool({ ...parts, open, ...stays });
  return {
    name,
    kind: adapter.kind,
    config,
    external: true,
    agent: true,
    counts: adapter.counts,
    staysOpen: stays?.warm.max ?? 0,
    passes: [...adapter.variables, ...adapter.login.variables, ...config.pass_env],
    probe: (stateDir) => probeAgent(name, parts, stateDir),
    start: (run) => runAgent(parts, run, pool),
    release: (workerId) => pool?.release(workerId) ?? Promise.resolve(),
  };
}

// A lost session is replaced by a new one once, and a session whose id is in use is resumed once.
const STARTS_MAX = 3;

async function runAgent(parts: AgentParts, run: EngineRun, pool: WarmPool | null): Promise<EngineOutcome> {
  const { adapter } = parts;
  let start: Start = run.session === null
    ? { sessionId: newSessionId(adapter), resume: false, prompt: run.prompt }
    : { sessionId: run.session.id, resume: true, prompt: run.prompt };
  try {
    for (let starts = 1;; starts++) {
      const stays = pool !== null && mayStayOpen(parts, run);
      // Two processes never have one conversation.
      if (!stays) await pool?.letGo(run);
      const ran = stays ? await pool.run(run, start) : await runAgentProcess(parts, run, start);
      const next = starts < STARTS_MAX ? nextStart(adapter, run, ran) : null;
      if (next === null) return outcomeOf(parts, ran);
      start = next;
    }
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    return failedOutcome("spawn_failed", `Cannot start ${adapter.kind}: ${error.message}`);
  }
}

// What belongs to a conversation goes on in it; a schema is said when the process starts.
function mayStayOpen({ adapter, config }: AgentParts, { env, schema, extraArgs }: EngineRun): boolean {
  const takes = adapter.open?.takes?.([...config.args, ...splitArgs(extraArgs)]) ?? true;
  return takes && schema === null && hasConversation(env.SVC_SESSION_KEY ?? "");
}

function newSessionId(adapter: Adapter): string {
  return adapter.plansSession ? crypto.randomUUID() : "";
}

/** The next start, after the engine has refused the session; null when there is no reason for one. */
function nextStart(adapter: Adapter, run: EngineRun, ran: Ran): Start | null {
  const { start, finished, strayed } = ran;
  if (run.signal.aborted || !finished) return null;
  const failure = strayed ? "unknown_session" : failureOf(adapter, ran)?.kind;
  if (failure === "unknown_session" && start.resume) {
    run.log.line("[the engine has lost the session: a new one begins, told what was said before]");
    return { sessionId: newSessionId(adapter), resume: false, prompt: run.retelling };
  }
  if (failure === "session_exists" && !start.resume) {
    run.log.line("[the session exists already: it goes on]");
    return { ...start, resume: true };
  }
  return null;
}

/** The failure of a run that ended by itself, or null. */
function failureOf(adapter: Adapter, { start, end, reading }: Ran): EngineFailure | null {
  const { done, failure, stderr } = reading;
  if (done !== null) {
    return failure ?? (done.ok ? null : failureFrom(reading.said || lastWords(stderr), "model"));
  }
  if (failure !== null) return failure;
  if (end.code === 0) {
    return failureOfKind("crashed", `it ended without saying that it is done: ${lastWords(stderr)}`);
  }
  return adapter.failureOf({ code: end.code, stderr, resume: start.resume });
}

/** Our own cancel or time limit counts first, then the engine's final event, then its exit code (facts, engines 2.4). */
function outcomeOf({ config, adapter }: AgentParts, ran: Ran): EngineOutcome {
  const { start, end, reading, finished } = ran;
  const rest = {
    text: cutResult(reading.text),
    usage: reading.usage.run,
    // When the engine reports no session, the requested one is assumed.
    sessionId: reading.session || (start.resume ? start.sessionId : ""),
    sessionUsage: reading.usage.session,
  };
  if (!finished) return { ...failedOutcome(...endedByUs(end.reason, config), end.code), ...rest };
  const failure = failureOf(adapter, ran);
  if (failure !== null) {
    const { kind, reset } = failure;
    const words = kind === "auth" ? `${failure.words} (${adapter.login.advice})` : failure.words;
    return { ...failedOutcome(FAILURE_OF[kind], `${kind}: ${words}`, end.code), ...rest, reset };
  }
  // A run without any text and any action is not a success.
  if (!reading.acted) {
    return { ...failedOutcome("engine_error", "crashed: it said and did nothing", end.code), ...rest };
  }
  return { ...failedOutcome("exit_code", "", end.code), status: "completed", failure: "", ...rest };
}

const FAILURE_OF: Record<EngineFailureKind, Failure> = {
  unknown_session: "engine_error",
  session_exists: "engine_error",
  auth: "engine_error",
  rate_limited: "rate_limited",
  model: "engine_error",
  setup: "engine_error",
  crashed: "exit_code",
};
