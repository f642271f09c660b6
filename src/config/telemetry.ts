import { z } from "zod";

// Header names of HTTP, and values without control characters.
const header = z.string().regex(/^[!-~][ -~]*$/, { error: "must be printable ASCII text" });

/** Where traces go. They are off while `otlp` is empty. */
export const telemetrySchema = z.strictObject({
  otlp: z.string().refine((text) => text === "" || isCollector(text), {
    error:
      "must be the http or https address of a collector, such as http://localhost:4318, without /v1/traces",
  }).default(""),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]+$/), header).default({}),
  content: z.boolean().default(false),
});

export type TelemetryConfig = z.output<typeof telemetrySchema>;

function isCollector(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "" &&
    url.hash === "" && !/\/v1\/traces\/?$/.test(url.pathname);
}
