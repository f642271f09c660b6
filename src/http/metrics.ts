import { buildGauge, type Metric, type Sample } from "../api/system/metrics.ts";
import { authenticate, isLoopback, isOwnHost } from "./authenticate.ts";
import { authorize } from "./authorize.ts";
import type { App } from "./app_types.ts";
import type { HttpDeps } from "./http_deps.ts";

const PROXY_HEADERS = [
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "forwarded",
  "via",
];

/** Mounts /metrics for a token with read:system and for direct callers on this machine (contract 5.2). Totals only: no names or ids. */
export function mountMetrics(app: App, { api, authority, lifecycle, hosts }: HttpDeps): void {
  let lag: LagMeter | null = null;
  app.get("/metrics", async (c) => {
    const request = c.req.raw;
    const direct = !PROXY_HEADERS.some((name) => request.headers.has(name)) &&
      isLoopback(c.env.address) &&
      // If another site's name resolves to this machine, a page of that site reaches the service from the browser's own address.
      isOwnHost(c.req.header("host") ?? new URL(request.url).host, hosts.allowed_hosts);
    if (!direct || request.headers.has("authorization")) {
      authorize((await authenticate(authority, request, new URL(request.url))).caller, {
        access: "read:system",
      });
    }
    lag ??= new LagMeter(lifecycle.stopping);
    const metrics = [...await api.system.metrics(), lag.take()];
    const headers = {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "cache-control": "no-store",
    };
    return new Response(formatMetrics(metrics), { headers });
  });
}

/** Measures the longest timer delay between two scrapes, starting at the first scrape. */
class LagMeter {
  #longestMs = 0;
  #expected = 0;

  constructor(stopping: AbortSignal) {
    const tick = () => {
      const now = performance.now();
      this.#longestMs = Math.max(this.#longestMs, now - this.#expected);
      this.#expected = now + LAG_TICK_MS;
    };
    this.#expected = performance.now() + LAG_TICK_MS;
    const timer = setInterval(tick, LAG_TICK_MS);
    stopping.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  take(): Metric {
    const longestMs = Math.max(0, this.#longestMs);
    this.#longestMs = 0;
    const help = "Longest delay of the event loop since the last scrape.";
    return buildGauge("svc_event_loop_lag_seconds", help, longestMs / 1000);
  }
}

const LAG_TICK_MS = 100;

/** Formats metrics as Prometheus text, version 0.0.4. */
export function formatMetrics(metrics: readonly Metric[]): string {
  return metrics.map(({ name, type, help, value }) => {
    const samples = typeof value === "number" ? [[{}, value] as Sample] : value;
    const lines = samples.map(([labels, number]) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
      return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${number}\n`;
    });
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
  }).join("");
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
