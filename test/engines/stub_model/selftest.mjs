// Tests the scripted model: node selftest.mjs, or deno run -A selftest.mjs.
import { startStub, USAGE } from "./stub.mjs";
import net from "node:net";
import process from "node:process";

const stub = await startStub({ port: 0, quiet: true, requireKey: "", mcpToken: "tok" });
const B = stub.url;
let failed = 0;
const check = (name, ok, extra = "") => {
  if (!ok) failed++;
  console.log(`${ok ? "ok  " : "FAIL"} ${name} ${ok ? "" : extra}`);
};
const post = (path, body, headers = {}) =>
  fetch(B + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
const sse = async (r) =>
  (await r.text()).split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).map((
    d,
  ) => (d === "[DONE]" ? d : JSON.parse(d)));
const bash = {
  type: "object",
  properties: { command: { type: "string" }, description: { type: "string" } },
  required: ["command", "description"],
};

// The four wire formats: [path, body for a prompt, text out of the answer, tool call out of the answer]
const say = (p) => [{ role: "user", content: p }];
const kinds = {
  anthropic: {
    path: "/v1/messages",
    body: (p, stream, tools) => ({
      model: "m",
      stream,
      messages: say(p),
      ...(tools ? { tools: [{ name: "Bash", input_schema: bash }] } : {}),
    }),
    text: (e) => e.filter((x) => x.delta?.type === "text_delta").map((x) => x.delta.text).join(""),
    tool: (e) => JSON.parse(e.find((x) => x.delta?.type === "input_json_delta").delta.partial_json).command,
    plain: (j) => j.content[0].text,
    usage: (e) => e.find((x) => x.type === "message_delta").usage.output_tokens,
  },
  responses: {
    path: "/v1/responses",
    body: (p, stream, tools) => ({
      model: "m",
      stream,
      input: say(p),
      ...(tools
        ? {
          tools: [{
            type: "function",
            name: "exec_command",
            parameters: { type: "object", properties: { cmd: { type: "string" } }, required: ["cmd"] },
          }],
        }
        : {}),
    }),
    text: (e) => e.filter((x) => x.type === "response.output_text.delta").map((x) => x.delta).join(""),
    tool: (e) => JSON.parse(e.find((x) => x.type === "response.output_item.done").item.arguments).cmd,
    plain: (j) => j.output[0].content[0].text,
    usage: (e) => e.find((x) => x.type === "response.completed").response.usage.output_tokens,
  },
  chat: {
    path: "/v1/chat/completions",
    body: (p, stream, tools) => ({
      model: "m",
      stream,
      messages: say(p),
      ...(tools ? { tools: [{ type: "function", function: { name: "bash", parameters: bash } }] } : {}),
    }),
    text: (e) => e.map((x) => x.choices?.[0]?.delta?.content ?? "").join(""),
    tool: (e) =>
      JSON.parse(
        e.find((x) => x.choices?.[0]?.delta?.tool_calls).choices[0].delta.tool_calls[0].function.arguments,
      ).command,
    plain: (j) => j.choices[0].message.content,
    usage: (e) => e.find((x) => x.usage).usage.completion_tokens,
  },
  gemini: {
    path: null,
    body: (p, _s, tools) => ({
      contents: [{ role: "user", parts: [{ text: p }] }],
      ...(tools
        ? { tools: [{ functionDeclarations: [{ name: "run_shell_command", parametersJsonSchema: bash }] }] }
        : {}),
    }),
    text: (e) => e.flatMap((x) => x.candidates[0].content.parts).map((x) => x.text ?? "").join(""),
    tool: (e) => e[0].candidates[0].content.parts.find((x) => x.functionCall).functionCall.args.command,
    plain: (j) => j.candidates[0].content.parts[0].text,
    usage: (e) => e.at(-1).usageMetadata.candidatesTokenCount + e.at(-1).usageMetadata.thoughtsTokenCount,
  },
};
for (const [name, k] of Object.entries(kinds)) {
  const path = (stream) =>
    k.path ?? `/v1beta/models/m:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
  let e = await sse(await post(path(true), k.body("hi", true)));
  check(`${name} stream text`, k.text(e) === "STUB-OK final answer", k.text(e));
  check(`${name} usage`, k.usage(e) === USAGE.text + USAGE.thinking, JSON.stringify(k.usage(e)));
  check(
    `${name} plain text`,
    k.plain(await (await post(path(false), k.body("hi [[text:abc]]", false))).json()) === "abc",
  );
  e = await sse(await post(path(true), k.body("hi [[tool:ls -la]]", true, true)));
  check(`${name} tool call`, k.tool(e) === "ls -la");
  for (const code of [400, 401, 429, 500, 529]) {
    check(
      `${name} error ${code}`,
      (await post(path(true), k.body(`x [[error${code}]]`, true))).status === code,
    );
  }
  const twice = `x ${name} [[error503:2]]`;
  const seen = [];
  for (let i = 0; i < 3; i++) {
    const r = await post(path(true), k.body(twice, true));
    seen.push(r.status);
    await r.text();
  }
  check(`${name} fails twice, then works`, seen.join() === "503,503,200", seen.join());
  const t = Date.now();
  e = await sse(await post(path(true), k.body("x [[slow:4,50]]", true)));
  check(`${name} slow`, Date.now() - t >= 200 && k.text(e).startsWith("chunk1 chunk2 "), k.text(e));
  let cut = false;
  try {
    await (await post(path(true), k.body("x [[drop]]", true))).text();
  } catch {
    cut = true;
  }
  check(`${name} drop cuts the stream`, cut);
  const ac = new AbortController();
  setTimeout(() => ac.abort(), 200);
  let hung = false;
  try {
    await fetch(B + path(true), {
      method: "POST",
      body: JSON.stringify(k.body("x [[hang]]", true)),
      signal: ac.signal,
    });
  } catch {
    hung = true;
  }
  check(`${name} hang`, hung);
}
// History: tool results, recall, the newest prompt decides
let j = await (await post("/v1/messages", {
  model: "m",
  messages: [{ role: "user", content: "a [[id:one]] [[tool:x]]" }, {
    role: "assistant",
    content: [{ type: "tool_use", id: "t", name: "Bash", input: {} }],
  }, { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "OUT" }] }],
  tools: [{ name: "Bash", input_schema: bash }],
})).json();
check(
  "final text after a tool result",
  j.content[0].text === "STUB-OK final answer | tool output: OUT",
  j.content[0].text,
);
j = await (await post("/v1/chat/completions", {
  model: "m",
  messages: [
    ...say("a [[id:one]]"),
    { role: "assistant", content: "x" },
    ...say("b [[id:two]] [[recall]]"),
  ],
})).json();
check(
  "recall",
  /recall: one,two \| user texts: 2/.test(j.choices[0].message.content),
  j.choices[0].message.content,
);
j = await (await post("/v1/messages", {
  model: "m",
  system: "SYS mark",
  messages: [{
    role: "user",
    content: [{ type: "text", text: "<system-reminder>CLAUDE.md says hello</system-reminder>" }, {
      type: "text",
      text: "q [[seen:hello]]",
    }],
  }],
})).json();
check(
  "seen: found in messages, reminder is not a prompt",
  /seen in: messages/.test(j.content[0].text),
  j.content[0].text,
);
j =
  await (await post("/v1/messages", { model: "m", system: "SYS mark", messages: say("q [[seen:SYS mark]]") }))
    .json();
check(
  "seen: found in system, not in its own marker",
  /seen in: system$/.test(j.content[0].text),
  j.content[0].text,
);
// Codex code mode: tools come as an input item, the shell is inside a script tool
j = await (await post("/v1/responses", {
  model: "m",
  input: [{
    type: "additional_tools",
    role: "developer",
    tools: [{
      type: "namespace",
      name: "functions",
      tools: [{ type: "custom", name: "exec", description: "await tools.exec_command(...)" }],
    }],
  }, { type: "message", role: "user", content: [{ type: "input_text", text: "x [[tool:echo 1]]" }] }],
})).json();
check(
  "code mode tool call",
  j.output[0].type === "custom_tool_call" && j.output[0].namespace === "functions" &&
    j.output[0].input.includes("echo 1"),
  JSON.stringify(j.output),
);
j = await (await post("/v1/responses", {
  model: "m",
  input: say("x [[say:wait]] [[tool:ls]]"),
  tools: [{
    type: "function",
    name: "shell",
    parameters: { type: "object", properties: { command: { type: "array" } }, required: ["command"] },
  }],
})).json();
check(
  "say before a tool call, array command",
  j.output[0].content[0].text === "wait" &&
    JSON.parse(j.output[1].arguments).command.join(" ") === "bash -lc ls",
  JSON.stringify(j.output),
);
// Structured output, models, counting, MCP, upgrade, CONNECT, log of requests
j = await (await post("/v1/chat/completions", {
  model: "m",
  messages: say("x"),
  response_format: {
    type: "json_schema",
    json_schema: { schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
  },
})).json();
check("structured answer", JSON.parse(j.choices[0].message.content).n === 1);
check("models", (await (await fetch(B + "/v1/models")).json()).data[0].id === "stub-model");
check(
  "count tokens",
  (await (await post("/v1/messages/count_tokens", { messages: [] })).json()).input_tokens === 150,
);
check(
  "mcp without token",
  (await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })).status === 401,
);
const H = { authorization: "Bearer tok" };
check(
  "mcp initialize",
  (await (await post("/mcp", {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18" },
  }, H)).json()).result.serverInfo.name === "stub-mcp",
);
check(
  "mcp notification",
  (await post("/mcp", { jsonrpc: "2.0", method: "notifications/initialized" }, H)).status === 202,
);
check(
  "mcp call",
  (await (await post("/mcp", {
    jsonrpc: "2.0",
    id: 2,
    method: "tools/call",
    params: { name: "stub_ping", arguments: { text: "x" } },
  }, H)).json()).result.content[0].text === "pong x",
);
check("unknown path", (await post("/nothing", {})).status === 404);
check(
  "bad JSON does not kill it",
  (await fetch(B + "/v1/messages", { method: "POST", body: "{" })).status === 200,
);
const raw = (text) =>
  new Promise((ok) => {
    const s = net.connect(stub.port, "127.0.0.1", () => s.write(text));
    let d = "";
    s.on("data", (x) => {
      d += x;
      s.destroy();
      ok(d);
    });
    s.on("error", () => ok(d));
    s.on("close", () => ok(d));
  });
check(
  "upgrade refused",
  /^HTTP\/1\.1 4\d\d/.test(
    await raw(
      "GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ),
  ),
);
check(
  "CONNECT refused",
  /^HTTP\/1\.1 4\d\d/.test(await raw("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")),
);
const reqs = await (await fetch(B + "/__stub/requests")).json();
check(
  "request log",
  reqs.length > 20 && reqs.some((r) => r.plan === "tool:Bash") && reqs.some((r) => r.method === "CONNECT"),
);
check(
  "reset",
  (await (await fetch(B + "/__stub/reset", { method: "POST" })).json()).ok &&
    (await (await fetch(B + "/__stub/requests")).json()).length === 0,
);
const locked = await startStub({ port: 0, quiet: true, requireKey: "good" });
const keyed = async (h) =>
  (await fetch(locked.url + "/v1/messages", {
    method: "POST",
    headers: h,
    body: JSON.stringify({ messages: say("x") }),
  })).status;
check("wrong key", (await keyed({ "x-api-key": "bad" })) === 401);
check("right key", (await keyed({ authorization: "Bearer good" })) === 200);
await Promise.race([Promise.all([stub.close(), locked.close()]), new Promise((r) => setTimeout(r, 1000))]);
console.log(failed ? `${failed} FAILED` : "all good");
process.exit(failed ? 1 : 0);
