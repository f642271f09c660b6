import type { IncomingMessage } from "node:http";

// Headers of one connection, which no proxy passes on.
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|http2-settings)$/;
// Keys of the client, and headers that name another host, method or client (contract-3 22).
const REMOVED = new RegExp(
  `^(${
    [
      "authorization|x-api-key|x-goog-api-key|api-key|cookie|traceparent|tracestate|baggage",
      "host|x-host|forwarded|via|x-forwarded-.*|x-original-.*|x-rewrite-.*|x-http-method.*|x-method-override",
      "x-real-ip|client-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip",
    ].join("|")
  })$`,
);

/** Reads the run's token or its process's key. It may stand where a provider's programs put their key, but never in the query. */
export function readGatewayToken({ headers }: Request): string | null {
  const bearer = headers.get("authorization");
  if (bearer !== null) return /^bearer +(\S+)$/i.exec(bearer)?.[1] ?? "";
  return headers.get("x-api-key") ?? headers.get("api-key") ?? headers.get("x-goog-api-key");
}

/** Returns the headers of a request that the gateway passes on. */
export function pickRequestHeaders({ headers }: Request): Record<string, string> {
  const named = listNamed(headers.get("connection"));
  return Object.fromEntries(
    [...headers].filter(([name]) => !HOP_BY_HOP.test(name) && !REMOVED.test(name) && !named.includes(name)),
  );
}

/** Returns the headers of an answer that the gateway passes on. */
export function pickAnswerHeaders({ rawHeaders, headers }: IncomingMessage): [string, string][] {
  const named = listNamed(headers.connection ?? null);
  const pairs: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? "";
    if (HOP_BY_HOP.test(name) || name === "set-cookie" || named.includes(name)) continue;
    pairs.push([name, rawHeaders[i + 1] ?? ""]);
  }
  return pairs;
}

function listNamed(connection: string | null): string[] {
  return (connection ?? "").toLowerCase().split(",").map((name) => name.trim());
}
