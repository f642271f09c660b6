import { createLogger } from "../../base/log.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { formatAddress, type ServerFile, writeServerFile } from "./server_file.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { respondWithStatus } from "../health.ts";
import { toProblem } from "../problem.ts";

const log = createLogger("http");

const STANDBY_ERROR = new ServiceError(
  "unavailable",
  "Cannot accept the request: this service is a standby, and another one uses the database. Send the request to that one.",
  { retry_after_s: 2 },
);

/** Answers /livez with 200, and all other paths with 503 (contract 18). */
function answerRequest(request: Request): Response {
  switch (new URL(request.url).pathname) {
    case "/livez":
      return respondWithStatus(200, "ok");
    case "/readyz":
      return respondWithStatus(503, "standby");
  }
  return toProblem(STANDBY_ERROR);
}

/** Answers on a port as a standby, and writes the address for `ctl`. The Listener continues with these connections after a takeover. */
export function answerAsStandby(
  port: Deno.TcpListener,
  limits: ConnectionLimits,
  announced: ServerFile,
): Connections {
  writeServerFile(announced, formatAddress(port.addr as Deno.NetAddr));
  return new Connections(port, limits, {
    handle: (request) => Promise.resolve(answerRequest(request)),
    onError: (error) => log.error("Cannot complete a request: {error}", { error }),
    onFull: () => toProblem(STANDBY_ERROR),
  });
}
