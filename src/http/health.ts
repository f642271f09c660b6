import type { App } from "./app_types.ts";
import type { HttpDeps } from "./http_deps.ts";

/** Mounts /livez and /readyz, which need no token (contract 5.2). */
export function mountHealth(app: App, { api }: HttpDeps): void {
  app.get("/livez", () => respondWithStatus(200, "ok"));
  app.get("/readyz", async () => {
    const status = await api.system.readiness();
    return respondWithStatus(status === "ready" ? 200 : 503, status);
  });
}

/** Builds a response with `status`, which asks the client to retry after a 503. */
export function respondWithStatus(code: number, status: string): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (code === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify({ status }), { status: code, headers });
}
