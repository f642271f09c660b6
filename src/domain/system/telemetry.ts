import type { RunCall } from "../work/run_calls.ts";
import {
  buildSpanId,
  buildTraceId,
  findRunParent,
  placeMessage,
  placeRun,
  readTraceparent,
  type RunOrigin,
  type TraceSpan,
} from "./trace.ts";

// Longer texts of spans are cut.
const SPAN_TEXT_CHARACTERS = 8_000;

/** A message that was routed, or could not be. */
export interface TracedMessage {
  id: string;
  /** The traceparent of its sender, or "". */
  trace: string;
  session_key: string;
  platform: string;
  status: string;
  content: string;
  error: string;
  received_at: number;
  processed_at: number;
}

/** Builds the spans of a message: from its receipt to its tasks, with the waiting and the routing. `fedAt`: when its routing started. */
export function buildMessageSpans(
  message: TracedMessage,
  fedAt: number | null,
  hasContent: boolean,
): TraceSpan[] {
  const { id, session_key, platform, status, received_at, processed_at } = message;
  const at = placeMessage(id, message.trace);
  const attributes = {
    "gen_ai.conversation.id": session_key,
    "svc.platform": platform,
    "svc.message.id": id,
  };
  const error = status === "failed" ? (hasContent ? cut(message.error) : "failed") : null;
  const step = (name: string, startedAt: number, endedAt: number): TraceSpan => ({
    ...{ name, kind: "internal", traceId: at.traceId, spanId: createSpanId(), parentId: at.spanId },
    ...{ startedAt, endedAt, error: null, attributes: {} },
  });
  const routedFrom = fedAt ?? received_at;
  return [
    {
      ...{ name: `message ${platform}`, kind: "consumer", ...at },
      parentId: readTraceparent(message.trace)?.spanId ?? "",
      ...{ startedAt: received_at, endedAt: processed_at, error },
      attributes: {
        ...attributes,
        "svc.message.status": status,
        ...(hasContent ? { "gen_ai.input.messages": formatMessage("user", message.content) } : {}),
      },
    },
    ...(fedAt === null ? [] : [step("intake", received_at, fedAt)]),
    step("route", routedFrom, processed_at),
  ];
}

/** A run that has ended. */
export interface TracedRun extends RunOrigin {
  worker_id: string;
  worker_name: string;
  task_id: string;
  session_key: string;
  engine: string;
  status: string;
  failure: string;
  attempt: number;
  instruction: string;
  result: string;
  error: string;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
  /** When it could start: the creation of its task, or of the run for a later attempt or a schedule. */
  queued_at: number;
  started_at: number;
  completed_at: number;
}

/** Builds the spans of a run: its waiting, the run, and its calls of tools and gateways. */
export function buildRunSpans(run: TracedRun, calls: readonly RunCall[], hasContent: boolean): TraceSpan[] {
  const parent = findRunParent(run);
  const at = placeRun(run);
  const parentId = parent?.spanId ?? "";
  return [
    {
      ...{ name: "queue", kind: "internal", traceId: at.traceId, spanId: createSpanId() },
      parentId: parentId === "" ? at.spanId : parentId,
      ...{ startedAt: Math.min(run.queued_at, run.started_at), endedAt: run.started_at, error: null },
      attributes: { "svc.task.id": run.task_id },
    },
    {
      ...{ name: `invoke_agent ${run.worker_name}`, kind: "internal", ...at, parentId },
      ...{ startedAt: run.started_at, endedAt: run.completed_at },
      error: run.status === "failed" ? (hasContent ? cut(run.error) : run.failure) : null,
      attributes: describeRun(run, hasContent),
    },
    ...calls.map((call) => buildCallSpan(call, at, hasContent)),
  ];
}

function describeRun(run: TracedRun, hasContent: boolean): TraceSpan["attributes"] {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.id": run.worker_id,
    "gen_ai.agent.name": run.worker_name,
    "gen_ai.conversation.id": run.session_key,
    "gen_ai.usage.input_tokens": run.input_tokens,
    "gen_ai.usage.output_tokens": run.output_tokens,
    "error.type": run.failure === "" ? null : run.failure,
    "svc.engine": run.engine,
    "svc.task.id": run.task_id,
    "svc.execution.id": run.execution_id,
    "svc.attempt": run.attempt,
    "svc.cost_usd": run.cost_usd,
    ...(hasContent
      ? {
        "gen_ai.input.messages": formatMessage("user", run.instruction),
        "gen_ai.output.messages": formatMessage("assistant", run.result),
      }
      : {}),
  };
}

function buildCallSpan(
  call: RunCall,
  run: { traceId: string; spanId: string },
  hasContent: boolean,
): TraceSpan {
  const isTool = call.kind === "tool";
  const attributes = isTool
    ? {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.name,
      ...(hasContent ? { "gen_ai.tool.call.arguments": cut(call.input) } : {}),
    }
    : {
      "svc.gateway": call.name,
      "gen_ai.usage.input_tokens": call.inputTokens || null,
      "gen_ai.usage.output_tokens": call.outputTokens || null,
    };
  return {
    name: isTool ? `execute_tool ${call.name}` : `gateway ${call.name}`,
    kind: isTool ? "internal" : "client",
    traceId: run.traceId,
    spanId: createSpanId(),
    parentId: run.spanId,
    startedAt: call.startedAt,
    endedAt: call.endedAt,
    error: call.isOk ? null : "failed",
    attributes,
  };
}

/** A reply that was delivered, or could not be. */
export interface TracedReply {
  id: string;
  session_key: string;
  platform: string;
  status: string;
  content: string;
  error: string;
  created_at: number;
  ended_at: number;
  /** The run that it answers for, or null. */
  run: RunOrigin | null;
  message_id: string | null;
  message_trace: string;
}

/** Builds the span of a reply's delivery. null: it belongs to no message and no run. */
export function buildReplySpan(reply: TracedReply, hasContent: boolean): TraceSpan | null {
  const { id, session_key, platform, status, created_at, ended_at, run, message_id } = reply;
  const parent = run !== null
    ? placeRun(run)
    : message_id === null
    ? null
    : placeMessage(message_id, reply.message_trace);
  if (parent === null) return null;
  return {
    ...{ name: `deliver ${platform}`, kind: "producer", traceId: parent.traceId, spanId: buildSpanId(id) },
    parentId: parent.spanId,
    ...{ startedAt: created_at, endedAt: ended_at },
    error: status === "failed" ? (hasContent ? cut(reply.error) : "failed") : null,
    attributes: {
      "gen_ai.conversation.id": session_key,
      "svc.platform": platform,
      "svc.reply.id": id,
      ...(hasContent ? { "gen_ai.output.messages": formatMessage("assistant", reply.content) } : {}),
    },
  };
}

// The form of the GenAI semantic conventions.
function formatMessage(role: string, content: string): string {
  return JSON.stringify([{ role, parts: [{ type: "text", content: cut(content) }] }]);
}

function cut(text: string): string {
  return text.slice(0, SPAN_TEXT_CHARACTERS);
}

function createSpanId(): string {
  return buildTraceId(crypto.randomUUID()).slice(-16);
}

/** Returns the address that takes traces. */
export function buildTracesUrl(otlp: string): string {
  return `${otlp.replace(/\/+$/, "")}/v1/traces`;
}
