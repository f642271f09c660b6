import { load } from "../../base/lazy_import.ts";
import type { TelemetryConfig } from "../../config/telemetry.ts";
import { buildTracesUrl } from "../../domain/system/telemetry.ts";
import { formatTraceparent, placeRun } from "../../domain/system/trace.ts";
import { RunCalls } from "../../domain/work/run_calls.ts";
import type { RunTracer } from "../../run/environment.ts";
import { findRunOrigin } from "../../store/events/trace.ts";
import type { Stage, StageServices } from "../stage/stage.ts";
import { SpanQueue, type SpanSender } from "./span_queue.ts";
import { createTraces } from "./traces.ts";

interface TelemetryOptions extends StageServices {
  config: TelemetryConfig;
  /** Resolves the value of a header, which may name a secret. */
  resolveSecret: (value: string) => Promise<string>;
}

/** The traces of a service, on their way to a collector. */
export interface Telemetry {
  stage: Stage;
  calls: RunCalls;
  countDropped: () => number;
  traceRun: RunTracer;
  /** Sends what waits once more, after the end of the stage. */
  stop: () => Promise<void>;
}

/** Creates the traces of a service. null without a collector. */
export function createTelemetry(options: TelemetryOptions): Telemetry | null {
  const { config, db } = options;
  if (config.otlp === "") return null;
  const queue = new SpanQueue(createSender(options));
  const calls = new RunCalls();
  const { stage, readRest } = createTraces({ ...options, queue, calls, hasContent: config.content });
  return {
    stage,
    calls,
    countDropped: () => queue.dropped,
    traceRun: async (executionId) => {
      const origin = await findRunOrigin(db, executionId);
      return origin === null ? null : formatTraceparent(placeRun(origin));
    },
    stop: async () => {
      await readRest().catch(() => {});
      await queue.stop();
    },
  };
}

// After a failure the headers are resolved again, as their secrets may have changed.
function createSender({ config, resolveSecret }: TelemetryOptions): SpanSender {
  let sender: SpanSender | null = null;
  const open = async () => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(config.headers)) headers[name] = await resolveSecret(value);
    const otlp = await load<typeof import("./otlp.ts")>("./otlp.ts", import.meta.url);
    return otlp.createOtlpSender(buildTracesUrl(config.otlp), headers);
  };
  return async (spans) => {
    try {
      sender ??= await open();
      await sender(spans);
    } catch (error) {
      sender = null;
      throw error;
    }
  };
}
