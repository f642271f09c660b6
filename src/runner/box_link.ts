// Forwards the requests of a box on a runner to the service (contract-3 21).
import { ServiceError } from "../domain/call/error.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("runner");

// Headers of one connection, and those by which a proxy names the client of a request: the box is the client here.
const DROPPED =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|expect|forwarded|x-forwarded-.*)$/;

/** Sends a request of a box to the service at `url`. The caller has checked that a box may reach its path. Throws `unavailable`. */
export async function forwardToService(url: string, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers([...request.headers].filter(([name]) => !DROPPED.test(name)));
  try {
    const { status, headers: received, body } = await fetch(`${url}${pathname}${search}`, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
      signal: request.signal,
    });
    return new Response(body, { status, headers: received });
  } catch (error) {
    log.debug("Cannot forward a request of a box: {error}", { error });
    throw new ServiceError("unavailable", "Cannot reach the service from its runner", { retry_after_s: 1 });
  }
}
