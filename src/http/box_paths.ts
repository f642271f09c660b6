import { ServiceError } from "../domain/call/error.ts";

/** Peer of the requests from a box. It is no IP address, so no right of this machine or of a trusted proxy applies. */
export const BOX_PEER = "box";

const OPEN_TO_BOXES = /^\/(api|gateway)\/|^\/(mcp|openapi\.json|livez|readyz)$/;
const CLOSED_TO_BOXES = /^\/api\/auth(\/|$)/;

/**
 * Throws `forbidden` for a path that a box must not reach, such as /metrics, the console and logins (contract-3 21). `path` is the decoded
 * path by which the router chooses the route.
 */
export function checkBoxPath(path: string): void {
  if (OPEN_TO_BOXES.test(path) && !CLOSED_TO_BOXES.test(path)) return;
  throw new ServiceError(
    "forbidden",
    `Cannot use ${path.slice(0, 200)} from a box: a box reaches /api without /api/auth, /gateway and /mcp.`,
  );
}
