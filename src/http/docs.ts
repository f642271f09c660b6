import { openAsset } from "../base/asset.ts";
import type { App } from "./app_types.ts";

/** Paths of the reference: the page, and what it loads. */
export const DOCS_PATHS = ["/docs", "/docs/start.js", "/docs/swagger-ui.js", "/docs/swagger-ui.css"];

// Nothing from other hosts, nothing inline: no description that an agent wrote can become a program here.
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc: API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The same is in <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  displayRequestDuration: true,
  validatorUrl: null,
});
`;

const KEPT_A_DAY = "public, max-age=86400";

/** GET /docs: the API reference, from this server alone (contract 5.2). */
export function mountDocs(app: App): void {
  app.get("/docs", () => answer(PAGE, "text/html", "no-cache"));
  app.get("/docs/start.js", () => answer(START, "text/javascript", "no-cache"));
  app.get("/docs/swagger-ui.js", async () => {
    const script = await openAsset("swagger-ui-dist/swagger-ui-bundle.js", import.meta.url);
    return answer(script, "text/javascript", KEPT_A_DAY);
  });
  app.get("/docs/swagger-ui.css", async () => {
    const sheet = await openAsset("swagger-ui-dist/swagger-ui.css", import.meta.url);
    return answer(sheet, "text/css", KEPT_A_DAY);
  });
}

function answer(body: BodyInit, type: string, cache: string): Response {
  return new Response(body, {
    headers: {
      "content-type": `${type}; charset=utf-8`,
      "content-security-policy": CONTENT_SECURITY_POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": cache,
    },
  });
}
