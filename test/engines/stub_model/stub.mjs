// A scripted model for tests of agent CLIs: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and
// Gemini generateContent. README.md lists the markers.
import http from "node:http";
import { Buffer } from "node:buffer";
import { json, RENDER, sendError } from "./answers.mjs";
import { plan } from "./plan.mjs";
import { readAnthropic, readChat, readGemini, readResponses } from "./requests.mjs";
import { IN_TOTAL } from "./usage.mjs";

const HOST = "127.0.0.1";

/** Starts the model on a free port. */
export function startStub() {
  async function handle(req, res) {
    const url = new URL(req.url, `http://${HOST}`);
    const parts = [];
    for await (const c of req) parts.push(c);
    const raw = Buffer.concat(parts).toString("utf8");
    let body = null;
    try {
      body = raw === "" ? null : JSON.parse(raw);
    } catch {
      // A request without JSON has no prompt.
    }
    const path = url.pathname.replace(/\/{2,}/g, "/");
    if (req.method === "HEAD" || path === "/") return res.writeHead(200).end();

    const api = /\/messages$/.test(path)
      ? "anthropic"
      : /\/messages\/count_tokens$/.test(path)
      ? "anthropic-count"
      : /\/responses$/.test(path)
      ? "responses"
      : /\/chat\/completions$/.test(path)
      ? "chat"
      : /:(stream)?[gG]enerateContent$/.test(path)
      ? "gemini"
      : /:countTokens$/.test(path)
      ? "gemini-count"
      : /\/models(\/[^/]*)?$/.test(path) && req.method === "GET"
      ? "models"
      : "";

    if (api === "anthropic-count") return json(res, 200, { input_tokens: IN_TOTAL });
    if (api === "gemini-count") return json(res, 200, { totalTokens: IN_TOTAL });
    if (api === "models") return json(res, 200, buildModels(path));
    if (!api || req.method !== "POST") {
      return json(res, 404, { error: { message: `stub has no ${req.method} ${path}` } });
    }

    const turn = { anthropic: readAnthropic, responses: readResponses, chat: readChat, gemini: readGemini }
      [api](body ?? {}, url);
    const { system, instructions, systemInstruction, messages, input, contents, tools } = body ?? {};
    const all = [].concat(messages ?? input ?? contents ?? []);
    const isSystem = (m) => m?.role === "system" || m?.role === "developer";
    turn.raw = {
      system: [system, instructions, systemInstruction, all.filter(isSystem)],
      messages: all.filter((m) => !isSystem(m)),
      tools,
    };
    const p = plan(turn);
    if (p.kind === "error") return sendError(res, api, p.status, p.note);
    if (p.kind === "hang") return; // no answer until the client leaves
    RENDER[api](res, turn, p, url);
  }

  const server = http.createServer((req, res) => {
    handle(req, res).catch((e) => {
      console.error("stub error", e);
      if (!res.headersSent) json(res, 500, { error: { message: `stub bug: ${e.message}` } });
      else res.destroy();
    });
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  // Without WebSockets the CLIs use plain HTTP.
  server.on("upgrade", (_req, socket) => {
    socket.end("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  });
  server.on("clientError", (_e, socket) => socket.destroy());
  return new Promise((ok, bad) => {
    server.once("error", bad);
    server.listen(0, HOST, () =>
      ok({
        url: `http://${HOST}:${server.address().port}`,
        close: () =>
          new Promise((r) => {
            server.close(() => r());
            server.closeAllConnections?.();
          }),
      }));
  });
}

function buildModels(path) {
  const id = "stub-model";
  return {
    object: "list",
    has_more: false,
    data: [{ id, object: "model", type: "model", display_name: id, created: 0, owned_by: "stub" }],
    models: path.includes("v1beta") ? [{ name: `models/${id}` }] : [],
  };
}
