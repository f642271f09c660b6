import { configure, getLogger, type Logger, type LogRecord, type TextFormatter } from "@logtape/logtape";

export type { Logger };

export const LOG_LEVELS = ["debug", "info", "warning", "error"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** Returns the logger of an area. Loggers write nothing before configureLog(), so tests stay quiet. */
export function createLogger(area: string): Logger {
  return getLogger(["svc", area]);
}

/** Writes every log record to stderr, as JSON lines or aligned for people. Masks secrets in both. */
export async function configureLog(level: LogLevel, format: "json" | "pretty"): Promise<void> {
  const formatter = format === "json" ? formatJsonLine : await createPrettyFormatter();
  const encoder = new TextEncoder();
  await configure({
    reset: true,
    sinks: {
      stderr: (record) => {
        try {
          Deno.stderr.writeSync(encoder.encode(formatter(maskRecord(record))));
        } catch {
          // A closed stderr must not end the service.
        }
      },
    },
    loggers: [
      { category: ["svc"], lowestLevel: level, sinks: ["stderr"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["stderr"] },
    ],
  });
}

const SECRET_NAME = /token|password|secret|authorization|api_?key|cookie/i;
const SECRET_TEXT =
  /([?&]token=)[^&\s"']+|(bearer\s+)[\w.~+/=-]+|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+|(\/\/[^/\s:@]+:)[^@\s/]+(?=@)/gi;

/** Masks tokens, passwords in URLs and bearer values in a text (reliability SEC-1, SEC-2). */
export function redact(text: string): string {
  return text.replace(
    SECRET_TEXT,
    (_match, query, bearer, url) => `${query ?? bearer ?? url ?? ""}[redacted]`,
  );
}

function maskRecord(record: LogRecord): LogRecord {
  const properties: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record.properties)) {
    properties[name] = SECRET_NAME.test(name) ? "[redacted]" : maskValue(value);
  }
  const message = record.message.map((part, index) => (index % 2 === 0 ? part : maskValue(part)));
  return { ...record, message, properties };
}

function maskValue(value: unknown): unknown {
  if (typeof value === "string") return escapeControls(redact(value));
  if (value instanceof Error) return escapeControls(redact(formatError(value)));
  if (Array.isArray(value)) return value.map(maskValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      escapeControls(name),
      SECRET_NAME.test(name) ? "[redacted]" : maskValue(inner),
    ]),
  );
}

const CAUSES_MAX = 5;

function formatError(error: Error): string {
  const words: string[] = [];
  let one: unknown = error;
  for (let depth = 0; one !== undefined && one !== null && depth < CAUSES_MAX; depth++) {
    words.push(one instanceof Error ? one.stack ?? `${one.name}: ${one.message}` : String(one));
    one = one instanceof Error ? one.cause : undefined;
  }
  return words.join("\ncaused by ");
}

/**
 * Escapes control characters, so that no text from outside can forge a log line or send commands to a terminal (reliability
 * SEC-5).
 */
function escapeControls(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\r") return "\\r";
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

function formatJsonLine(record: LogRecord): string {
  return JSON.stringify({
    time: new Date(record.timestamp).toISOString(),
    level: record.level,
    area: record.category.slice(1).join("."),
    message: record.message.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(""),
    ...record.properties,
  }) + "\n";
}

async function createPrettyFormatter(): Promise<TextFormatter> {
  const { getPrettyFormatter } = await import("@logtape/pretty");
  const colors = Deno.stderr.isTerminal() && !Deno.env.get("NO_COLOR");
  return getPrettyFormatter({
    colors,
    icons: false,
    timestamp: "time",
    categoryWidth: 10,
    categoryTruncate: "end",
    wordWrap: false,
    properties: true,
  });
}
