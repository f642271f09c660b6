import { openAsset } from "../base/asset.ts";
import type { App } from "./app_types.ts";

/** The page of the API reference and its assets. */
export const DOCS_PATHS = [
  "/docs",
  "/docs/openapi.json",
  "/docs/start.js",
  "/docs/swagger-ui.js",
  "/docs/swagger-ui.css",
];

// Blocks other hosts and inline code, so that no description from an agent runs as a script.
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
<noscript>This page needs JavaScript. <a href="/openapi.json">/openapi.json</a> has the same content.</noscript>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: "/docs/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  displayRequestDuration: true,
  validatorUrl: null,
});
`;

const CACHE_ONE_DAY = "public, max-age=86400";

/**
 * Mounts the API reference at /docs, without files from other hosts (contract 5.2). `buildDocument` returns OpenAPI 3.0, because Swagger
 * UI takes seconds to open an operation of a document of 3.1.
 */
export function mountDocs(app: App, buildDocument: () => Promise<object>): void {
  app.get("/docs", () => respond(PAGE, "text/html", "no-cache"));
  app.get(
    "/docs/openapi.json",
    async () => respond(JSON.stringify(await buildDocument()), "application/json", "no-cache"),
  );
  app.get("/docs/start.js", () => respond(START, "text/javascript", "no-cache"));
  app.get("/docs/swagger-ui.js", async () => {
    const script = await openAsset("swagger-ui-dist/swagger-ui-bundle.js", import.meta.url);
    return respond(script, "text/javascript", CACHE_ONE_DAY);
  });
  app.get("/docs/swagger-ui.css", async () => {
    const sheet = await openAsset("swagger-ui-dist/swagger-ui.css", import.meta.url);
    return respond(sheet, "text/css", CACHE_ONE_DAY);
  });
}

function respond(body: BodyInit, type: string, cache: string): Response {
  return new Response(body, {
    headers: {
      "content-type": `${type}; charset=utf-8`,
      "content-security-policy": CONTENT_SECURITY_POLICY,
      "x-content-type-options": "nosniff",
      "cache-control": cache,
    },
  });
}
