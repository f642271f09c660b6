#!/usr/bin/env node
// A scripted model for tests of agent CLIs. Needs no package; runs on Node 18 and Deno 2 and newer.
// Speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini generateContent, and serves
// one small MCP server. README.md lists the options and the markers.
import http from "node:http";
import { Buffer } from "node:buffer";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { json, RENDER, sendError } from "./answers.mjs";
import { mcp } from "./mcp.mjs";
import { failures, plan } from "./plan.mjs";
import { readAnthropic, readChat, readGemini, readResponses } from "./requests.mjs";
import { IN_TOTAL } from "./usage.mjs";
export { USAGE } from "./usage.mjs";

const DEFAULTS = {
  host: "127.0.0.1",
  port: 8787,
  log: "", // JSONL file, one line per request
  dump: "", // folder for complete request bodies
  requireKey: "", // any other API key gets 401
  mcpToken: "", // bearer token that /mcp demands
  connect: "refuse", // what an HTTP CONNECT (proxy use) gets: refuse | hang
  text: "STUB-OK final answer", // the default final text
  quiet: false,
};

export function startStub(options = {}) {
  const opt = { ...DEFAULTS, ...options };
  const requests = [];
  let count = 0;
  if (opt.dump) mkdirSync(opt.dump, { recursive: true });

  const record = (entry) => {
    requests.push(entry);
    if (requests.length > 2000) requests.shift();
    if (opt.log) appendFileSync(opt.log, JSON.stringify(entry) + "\n");
    if (!opt.quiet) {
      console.error(`${entry.n} ${entry.method} ${entry.path} -> ${entry.plan ?? entry.status ?? ""}`);
    }
  };

  const keyOf = (req, url) => {
    const h = req.headers;
    return h["x-api-key"] ?? h["x-goog-api-key"] ?? h["api-key"] ??
      h.authorization?.replace(/^Bearer /i, "") ?? url.searchParams.get("key") ?? "";
  };

  async function handle(req, res) {
    const url = new URL(req.url, `http://${req.headers.host ?? "stub"}`);
    const parts = [];
    for await (const c of req) parts.push(c);
    const raw = Buffer.concat(parts).toString("utf8");
    let body = null;
    if (raw) {
      try {
        body = JSON.parse(raw);
      } catch {
        body = { unparsed: raw.slice(0, 2000) };
      }
    }
    const path = url.pathname.replace(/\/{2,}/g, "/");
    const key = keyOf(req, url);
    const entry = {
      n: ++count,
      at: Date.now(),
      method: req.method,
      path: path + url.search,
      agent: req.headers["user-agent"] ?? "",
      keyHead: key ? `${key.slice(0, 8)}(${key.length})` : "",
    };
    if (opt.dump && raw) {
      writeFileSync(
        join(opt.dump, `${String(entry.n).padStart(4, "0")}.json`),
        JSON.stringify({ method: req.method, url: req.url, headers: req.headers, body }, null, 1),
      );
    }

    if (path.startsWith("/__stub/")) {
      const what = path.slice(8);
      if (what === "health") return json(res, 200, { ok: true, pid: process.pid });
      if (what === "requests") return json(res, 200, requests);
      if (what === "reset") {
        requests.length = 0;
        failures.clear();
        return json(res, 200, { ok: true });
      }
      return json(res, 404, { error: "unknown control path" });
    }
    if (path === "/mcp") {
      mcp(req, res, body, opt, entry);
      entry.status = res.statusCode;
      entry.auth = req.headers.authorization ? `${req.headers.authorization.slice(0, 16)}…` : "";
      return record(entry);
    }
    if (req.method === "HEAD" || path === "/") {
      entry.status = 200;
      record(entry);
      res.writeHead(200);
      return res.end();
    }

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

    if (api && opt.requireKey && key !== opt.requireKey) {
      entry.status = 401;
      entry.api = api;
      record(entry);
      return sendError(res, api.split("-")[0], 401, "wrong key");
    }
    if (api === "anthropic-count") {
      entry.status = 200;
      record(entry);
      return json(res, 200, { input_tokens: IN_TOTAL });
    }
    if (api === "gemini-count") {
      entry.status = 200;
      record(entry);
      return json(res, 200, { totalTokens: IN_TOTAL });
    }
    if (api === "models") {
      entry.status = 200;
      record(entry);
      const ids = ["stub-model"];
      return json(res, 200, {
        object: "list",
        has_more: false,
        data: ids.map((id) => ({
          id,
          object: "model",
          type: "model",
          display_name: id,
          created: 0,
          owned_by: "stub",
        })),
        models: path.includes("v1beta") ? ids.map((id) => ({ name: `models/${id}` })) : [],
      });
    }
    if (!api || req.method !== "POST") {
      entry.status = 404;
      record(entry);
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
    const p = plan(turn, opt);
    Object.assign(entry, {
      api,
      model: turn.model,
      stream: turn.stream,
      prompt: turn.prompt.slice(-300),
      userTexts: turn.history.length,
      results: turn.results.length,
      tools: turn.tools.length,
      system: turn.system.length,
      plan: p.kind === "tool" ? `tool:${p.tool.name}` : p.kind === "error" ? `error${p.status}` : p.kind,
    });
    res.on("close", () => {
      if (!res.writableFinished) entry.clientLeft = true;
    });
    record(entry);
    if (p.kind === "error") return sendError(res, api, p.status, p.note);
    if (p.kind === "hang") return; // no answer until the client leaves
    await RENDER[api](res, turn, p, url);
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
  // WebSocket upgrades are refused, so that clients fall back to plain HTTP.
  server.on("upgrade", (req, socket) => {
    record({ n: ++count, at: Date.now(), method: "UPGRADE", path: req.url, status: 426 });
    socket.end("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  });
  // Used as HTTPS_PROXY the stub shows which outside hosts an engine wants.
  server.on("connect", (req, socket) => {
    record({
      n: ++count,
      at: Date.now(),
      method: "CONNECT",
      path: req.url,
      agent: req.headers["user-agent"] ?? "",
      status: opt.connect,
    });
    socket.on("error", () => {});
    if (opt.connect !== "hang") {
      socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
  });
  server.on("clientError", (_e, socket) => socket.destroy());
  return new Promise((ok, bad) => {
    server.once("error", bad);
    server.listen(opt.port, opt.host, () =>
      ok({
        server,
        requests,
        port: server.address().port,
        url: `http://${opt.host}:${server.address().port}`,
        close: () =>
          new Promise((r) => {
            server.close(() => r());
            server.closeAllConnections?.();
          }),
      }));
  });
}

function parseArgs(args) {
  const out = {};
  const names = {
    "--port": "port",
    "--host": "host",
    "--log": "log",
    "--dump": "dump",
    "--require-key": "requireKey",
    "--mcp-token": "mcpToken",
    "--connect": "connect",
    "--text": "text",
  };
  for (let i = 0; i < args.length; i++) {
    const [flag, inline] = args[i].split(/=(.*)/s);
    if (flag === "--quiet") out.quiet = true;
    else if (flag === "--help" || flag === "-h") out.help = true;
    else if (names[flag]) {
      const v = inline ?? args[++i];
      if (v === undefined) throw new Error(`${flag} needs a value`);
      out[names[flag]] = names[flag] === "port" ? Number(v) : v;
    } else throw new Error(`unknown argument ${args[i]}`);
  }
  return out;
}

const isMain = import.meta.main ??
  (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href);
if (isMain) {
  try {
    const opt = parseArgs(process.argv.slice(2));
    if (opt.help) {
      console.log(
        "usage: stub.mjs [--port 8787] [--host 127.0.0.1] [--log FILE] [--dump DIR] [--require-key KEY] [--mcp-token TOKEN] [--connect refuse|hang] [--text TEXT] [--quiet]",
      );
      process.exit(0);
    }
    const stub = await startStub(opt);
    console.log(JSON.stringify({ listening: stub.url, pid: process.pid }));
    for (const sig of ["SIGINT", "SIGTERM"]) {
      process.on(sig, () => {
        stub.close().then(() => process.exit(0));
      });
    }
  } catch (e) {
    console.error(String(e.message ?? e));
    process.exit(2);
  }
}
