import type { App } from "./app_types.ts";
import type { HttpDeps } from "./http_deps.ts";

/** Mounts /livez and /readyz, which need no token (contract 5.2). */
export function mountHealth(app: App, { api }: HttpDeps): void {
  app.get("/livez", () => respond(200, { status: "ok" }));
  app.get("/readyz", async () => {
    const status = await api.system.readiness();
    return respond(status === "ready" ? 200 : 503, { status });
  });
}

function respond(status: number, body: { status: string }): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (status === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify(body), { status, headers });
}
