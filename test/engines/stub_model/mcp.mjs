// A small MCP server over streamable HTTP, without sessions, with JSON answers.
import { json } from "./answers.mjs";

const MCP_TOOLS = [
  {
    name: "stub_ping",
    description: "Returns pong and the text.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  { name: "stub_fail", description: "Always fails.", inputSchema: { type: "object", properties: {} } },
];

export function mcp(req, res, body, opt, entry) {
  if (opt.mcpToken && req.headers.authorization !== `Bearer ${opt.mcpToken}`) {
    return json(res, 401, { error: "unauthorized" });
  }
  if (req.method === "DELETE") return json(res, 200, {});
  if (req.method !== "POST") {
    res.writeHead(405, { allow: "POST, DELETE" });
    return res.end();
  }
  const answer = (m) => {
    const ok = (result) => ({ jsonrpc: "2.0", id: m.id, result });
    switch (m.method) {
      case "initialize":
        return ok({
          protocolVersion: m.params?.protocolVersion ?? "2025-06-18",
          capabilities: { tools: { listChanged: false } },
          serverInfo: { name: "stub-mcp", version: "1.0.0" },
        });
      case "ping":
        return ok({});
      case "tools/list":
        return ok({ tools: MCP_TOOLS });
      case "tools/call":
        if (m.params?.name === "stub_ping") {
          return ok({
            content: [{ type: "text", text: `pong ${m.params?.arguments?.text ?? ""}` }],
            isError: false,
          });
        }
        if (m.params?.name === "stub_fail") {
          return ok({ content: [{ type: "text", text: "scripted failure" }], isError: true });
        }
        return {
          jsonrpc: "2.0",
          id: m.id,
          error: { code: -32602, message: `unknown tool ${m.params?.name}` },
        };
      case "resources/list":
        return ok({ resources: [] });
      case "resources/templates/list":
        return ok({ resourceTemplates: [] });
      case "prompts/list":
        return ok({ prompts: [] });
      default:
        return { jsonrpc: "2.0", id: m.id, error: { code: -32601, message: `no method ${m.method}` } };
    }
  };
  const list = Array.isArray(body) ? body : [body];
  entry.mcp = list.map((m) => m?.method).filter(Boolean);
  const replies = list.filter((m) => m && m.id !== undefined && m.method).map(answer);
  if (!replies.length) {
    res.writeHead(202);
    return res.end();
  }
  json(res, 200, Array.isArray(body) ? replies : replies[0]);
}
