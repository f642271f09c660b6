/** Returns a rate-limit response that ends at `reset`, in the format of the engine's provider. */
export function buildLimitResponse(kind: string, reset: number): Response {
  const seconds = Math.ceil((reset - Date.now()) / 1000);
  const words = `Rate limit reached. Please try again in ${seconds}s.`;
  const answer = (error: object, headers: Record<string, string> = {}) =>
    Response.json({ type: "error", error }, { status: 429, headers });
  switch (kind) {
    case "claude":
      return answer({ type: "rate_limit_error", message: words }, {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": String(Math.floor(reset / 1000)),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
      });
    case "codex":
      return answer({ type: "usage_limit_reached", plan_type: "plus", resets_at: Math.floor(reset / 1000) });
    case "gemini": {
      const retry = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${seconds}s` };
      const message = `You exceeded your current quota. Please retry in ${seconds}.5s.`;
      return answer({ code: 429, status: "RESOURCE_EXHAUSTED", message, details: [retry] });
    }
    case "copilot":
      return answer({ type: "tokens", code: "rate_limit_exceeded", message: words }, {
        "retry-after": String(seconds),
      });
    default:
      return answer({ type: "tokens", code: "rate_limit_exceeded", message: words });
  }
}
