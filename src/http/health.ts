import type { Door } from "./http_deps.ts";
import type { App } from "./app_types.ts";

/** GET /livez and /readyz, outside `/api` and without a token (contract 5.2). */
export function mountHealth(app: App, { api }: Door): void {
  app.get("/livez", () => answer(200, { status: "ok" }));
  app.get("/readyz", async () => {
    const status = await api.system.readiness();
    return answer(status === "ready" ? 200 : 503, { status });
  });
}

function answer(status: number, body: { status: string }): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (status === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify(body), { status, headers });
}
