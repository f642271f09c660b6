// OpenTelemetry's packages, which only a service with a collector loads.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { VERSION } from "../../base/version.ts";
import type { TraceSpan } from "../../domain/system/trace.ts";
import type { SpanSender } from "./span_queue.ts";

type ExportedSpan = Parameters<OTLPTraceExporter["export"]>[0][number];

const REQUEST_MAX_MS = 10_000;
const KINDS = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const;
const STATUS_ERROR = 2;
const SAMPLED = 1;

const RESOURCE = resourceFromAttributes({ "service.name": "svc", "service.version": VERSION });

/** Creates the sender of spans to a collector that speaks OTLP over HTTP. */
export function createOtlpSender(url: string, headers: Record<string, string>): SpanSender {
  const exporter = new OTLPTraceExporter({ url, headers, timeoutMillis: REQUEST_MAX_MS });
  return (spans) =>
    new Promise((resolve, reject) => {
      exporter.export(spans.map(convertSpan), ({ code, error }) => {
        if (code === 0) resolve();
        else reject(error ?? new Error("the collector refused the spans"));
      });
    });
}

function convertSpan(span: TraceSpan): ExportedSpan {
  const { traceId, spanId, parentId, startedAt, error } = span;
  const endedAt = Math.max(span.endedAt, startedAt);
  const context = (id: string) => ({ traceId, spanId: id, traceFlags: SAMPLED });
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context(spanId),
    ...(parentId === "" ? {} : { parentSpanContext: context(parentId) }),
    startTime: convertTime(startedAt),
    endTime: convertTime(endedAt),
    duration: convertTime(endedAt - startedAt),
    ended: true,
    status: error === null ? { code: 0 } : { code: STATUS_ERROR, message: error },
    attributes: Object.fromEntries(
      Object.entries(span.attributes).flatMap(([name, value]) => value === null ? [] : [[name, value]]),
    ),
    ...{ links: [], events: [], droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
    resource: RESOURCE,
    instrumentationScope: { name: "svc", version: VERSION },
  };
}

/** Unix ms as seconds and nanoseconds. */
function convertTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, (ms - seconds * 1_000) * 1_000_000];
}
