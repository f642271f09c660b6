// An MCP server with one tool, which repeats the key of the server for the parcel `show`. It speaks on stdin and stdout; startHttpServer() starts one over HTTP.

interface Message {
  id?: unknown;
  method?: string;
  params?: { protocolVersion?: string; arguments?: { parcel?: string } };
}

interface Tool {
  name: string;
  call: (parcel: string) => string;
}

/** Answers one message; null answers nothing. */
function answer({ id, method, params }: Message, { name, call }: Tool): object | null {
  if (id === undefined) return null;
  const reply = (result: object) => ({ jsonrpc: "2.0", id, result });
  if (method === "initialize") {
    return reply({
      protocolVersion: params?.protocolVersion ?? "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "parcels", version: "1" },
    });
  }
  if (method === "tools/list") {
    const inputSchema = { type: "object", properties: { parcel: { type: "string" } }, required: ["parcel"] };
    return reply({ tools: [{ name, description: "Looks at a parcel", inputSchema }] });
  }
  if (method === "tools/call") {
    return reply({ content: [{ type: "text", text: call(params?.arguments?.parcel ?? "") }] });
  }
  if (method === "ping") return reply({});
  return { jsonrpc: "2.0", id, error: { code: -32_601, message: `no method ${method}` } };
}

export interface HttpServer extends AsyncDisposable {
  url: string;
  /** The values of the header `x-parcel-key` in calls of the tool `price_parcel`. */
  keys: string[];
}

/** Starts a server over HTTP, which gets its key in the header `x-parcel-key` of `price_parcel`. */
export function startHttpServer(): HttpServer {
  const keys: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const key = request.headers.get("x-parcel-key") ?? "";
    const call = (parcel: string) => {
      keys.push(key);
      return `the price of ${parcel} is 9${parcel === "show" ? key : ""}`;
    };
    const found = answer(await request.json(), { name: "price_parcel", call });
    return found === null ? new Response(null, { status: 202 }) : Response.json(found);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    keys,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function runStdio(): Promise<void> {
  const key = Deno.env.get("PARCEL_KEY") ?? "";
  const call = (parcel: string) => {
    Deno.writeTextFileSync(
      "weighed.json",
      JSON.stringify({ parcel, key, args: Deno.args, run: Deno.env.get("SVC_RUN_ID") }),
    );
    return `the weight of ${parcel} is 7${parcel === "show" ? key : ""}`;
  };
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((one) => one.trim() !== "")) {
      const found = answer(JSON.parse(line), { name: "weigh_parcel", call });
      if (found !== null) console.log(JSON.stringify(found));
    }
  }
}

if (import.meta.main) await runStdio();
