/** Traces of messages and runs, as spans of OpenTelemetry (contract 29). */

/** A position in a trace: the trace, and the span that is the parent of the next ones. */
interface TraceContext {
  traceId: string;
  spanId: string;
}

/** A finished operation of a trace. */
export interface TraceSpan {
  name: string;
  kind: "internal" | "client" | "server" | "producer" | "consumer";
  traceId: string;
  spanId: string;
  /** "" for the first span of a trace. */
  parentId: string;
  /** Unix ms. */
  startedAt: number;
  endedAt: number;
  /** The words of a failure, or null without one. */
  error: string | null;
  attributes: Record<string, string | number | boolean | null>;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Reads the header or variable `traceparent` of W3C Trace Context. null for any other text. */
export function readTraceparent(text: string): TraceContext | null {
  const [, traceId, spanId] = TRACEPARENT.exec(text.trim()) ?? [];
  return traceId === undefined || spanId === undefined ? null : { traceId, spanId };
}

export function formatTraceparent({ traceId, spanId }: TraceContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Returns the id of the trace that a row starts. Ids of rows are UUIDs, which have the length of a trace's id. */
export function buildTraceId(id: string): string {
  return id.replaceAll("-", "");
}

/** Returns the span of a row: a part of its id that is random. */
export function buildSpanId(id: string): string {
  return buildTraceId(id).slice(-16);
}

/** Returns the position of a message: in the trace of its caller, or at the start of a new one. */
export function placeMessage(id: string, caller: string): TraceContext {
  return { traceId: readTraceparent(caller)?.traceId ?? buildTraceId(id), spanId: buildSpanId(id) };
}

/** The rows that decide in which trace a run is. */
export interface RunOrigin {
  execution_id: string;
  /** The traceparent of who created the task, or "". */
  task_trace: string;
  /** The stored message that led to the task, or null. */
  message_id: string | null;
  message_trace: string;
  task_type: string;
}

/** Returns the parent of a run. null: the run starts a trace. Each run of a schedule does, or the trace would never end. */
export function findRunParent(origin: RunOrigin): TraceContext | null {
  if (origin.task_type === "scheduled") return null;
  const caller = readTraceparent(origin.task_trace);
  if (caller !== null) return caller;
  return origin.message_id === null ? null : placeMessage(origin.message_id, origin.message_trace);
}

/** Returns the position of a run, as its programs get it. */
export function placeRun(origin: RunOrigin): TraceContext {
  return {
    traceId: findRunParent(origin)?.traceId ?? buildTraceId(origin.execution_id),
    spanId: buildSpanId(origin.execution_id),
  };
}
