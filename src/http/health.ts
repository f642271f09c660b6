import type { Service } from "../api/service.ts";
import type { App } from "./mount.ts";

/** What readiness depends on. */
export interface Health {
  /** Whether every background stage is alive. */
  stagesWell: () => boolean;
}

/** GET /livez and /readyz, outside `/api` and without a token (contract 5). */
export function mountHealth(app: App, service: Service, health: Health): void {
  app.get("/livez", () => answer(200, { status: "ok" }));
  app.get("/readyz", async () => {
    if (service.state !== "ready") return answer(503, { status: service.state });
    if (!health.stagesWell()) return answer(503, { status: "a background stage is stalled; see the log" });
    try {
      await service.db.first("select 1 as one");
    } catch {
      return answer(503, { status: "database unreachable" });
    }
    return answer(200, { status: "ready" });
  });
}

function answer(status: number, body: { status: string }): Response {
  const headers: Record<string, string> = { "content-type": "application/json", "cache-control": "no-store" };
  if (status === 503) headers["retry-after"] = "2";
  return new Response(JSON.stringify(body), { status, headers });
}
