import { logger } from "../base/log.ts";
import { ServiceError } from "../domain/error.ts";
import { addressOf, announce, type Announced } from "./announcement.ts";
import type { Connections } from "./connections.ts";
import { toProblem } from "./problem.ts";

const log = logger("http");

const WAITS = new ServiceError(
  "unavailable",
  "Cannot take this now: this service is a standby, which waits while another one holds the database; ask that one",
  { retry_after_s: 2 },
);

/** What a standby answers: that it lives, that it is not ready, and to everything else a 503 that says why (contract 18). */
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

/** Answers on a port as a standby does, and announces the address to `ctl`, until the server that takes over handles the requests. */
export function answerAsStandby(port: Connections, announced: Announced): void {
  announce(announced, addressOf(port.addr));
  port.handOver({
    handle: (request) => Promise.resolve(standbyAnswer(request)),
    onError: (error) => log.error("A request failed outside of the application: {error}", { error }),
    onFull: () => toProblem(WAITS, crypto.randomUUID()),
  });
}

function status(code: number, word: string): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (code === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify({ status: word }), { status: code, headers });
}
