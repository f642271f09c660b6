import type { Answer, NextPage } from "../api/call/answer.ts";
import { formatTotal } from "../domain/call/page.ts";
import type { AnyRoute } from "./route.ts";
import { buildTextStream } from "./stream/text_stream.ts";

/** Longer texts are sent in pieces. */
const WHOLE_MAX_CHARS = 512 * 1024;

/** Converts the answer of an operation to a response with the status of the route (contract 1.4). */
export function respond(answer: Answer<unknown>, route: AnyRoute, url: URL): Response {
  const { json, total, next, replayed, warning } = answer;
  const { status = 200 } = route;
  if (status === 204) return new Response(null, { status });
  const headers: Record<string, string> = { "content-type": "application/json" };
  // A route that needs no token may return one (login), and caches must not store that response.
  if (route.access === "public") headers["cache-control"] = "no-store";
  if (total !== undefined) headers["x-total-count"] = formatTotal(total);
  if (next) headers.link = formatNextLink(url, next);
  if (replayed === true) headers["idempotent-replayed"] = "true";
  if (warning !== undefined) headers.warning = `299 svc "${warning}"`;
  if (answer.form === "lines") {
    headers["content-type"] = "application/x-ndjson";
    const rows = JSON.parse(json) as unknown[];
    return new Response(rows.map((row) => `${JSON.stringify(row)}\n`).join(""), { status, headers });
  }
  return new Response(json.length > WHOLE_MAX_CHARS ? buildTextStream(json) : json, { status, headers });
}

// Links never contain the token (reliability SEC-1).
function formatNextLink(url: URL, { name, value }: NextPage): string {
  const next = new URLSearchParams(url.search);
  next.delete("token");
  next.delete("page");
  next.set(name, value);
  return `<${url.pathname}?${next}>; rel="next"`;
}
