import { createLogger } from "../../base/log.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { formatAddress, type ServerFile, writeServerFile } from "./server_file.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { toProblem } from "../problem.ts";

const log = createLogger("http");

const WAITS = new ServiceError(
  "unavailable",
  "Cannot accept the request: this service is a standby, and another one uses the database. Send the request to that one.",
  { retry_after_s: 2 },
);

/** Answers /livez with 200, and all other paths with 503 (contract 18). */
function standbyAnswer(request: Request): Response {
  switch (new URL(request.url).pathname) {
    case "/livez":
      return status(200, "ok");
    case "/readyz":
      return status(503, "standby");
  }
  const requestId = crypto.randomUUID();
  const response = toProblem(WAITS, requestId);
  response.headers.set("x-request-id", requestId);
  return response;
}

/** Answers on a port as a standby, and writes the address for `ctl`. The Listener continues with these connections after a takeover. */
export function answerAsStandby(
  port: Deno.TcpListener,
  limits: ConnectionLimits,
  announced: ServerFile,
): Connections {
  writeServerFile(announced, formatAddress(port.addr as Deno.NetAddr));
  return new Connections(port, limits, {
    handle: (request) => Promise.resolve(standbyAnswer(request)),
    onError: (error) => log.error("Cannot complete a request: {error}", { error }),
    onFull: () => toProblem(WAITS, crypto.randomUUID()),
  });
}

function status(code: number, word: string): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (code === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify({ status: word }), { status: code, headers });
}
