// An agent that speaks the Agent Client Protocol, version 1, strictly: it refuses what a client must not
// send. Its prompt decides what it does, FAKE_ACP what it supports.
const CAN = new Set((Deno.env.get("FAKE_ACP") ?? "load").split(","));
const STATE = Deno.env.get("FAKE_ACP_STATE") ?? "";
const encoder = new TextEncoder();
// deno-lint-ignore no-explicit-any
type Message = any;

let lastId = 0;
let initialized = false;
let cancelled = false;
let session = "";
const waiting = new Map<number, (message: Message) => void>();

function say(message: Message): void {
  Deno.stdout.writeSync(encoder.encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`));
}
function update(update: Message): void {
  say({ method: "session/update", params: { sessionId: session, update } });
}
const chunk = (text: string) =>
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
function note(line: Message): void {
  if (STATE !== "") {
    Deno.writeTextFileSync(`${STATE}/heard.jsonl`, `${JSON.stringify(line)}\n`, { append: true });
  }
}
function request(method: string, params: Message): Promise<Message> {
  const id = ++lastId;
  say({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const buildHistoryPath = (id: string) => `${STATE}/session-${id}.jsonl`;
const readHistory = (id: string): string[] =>
  Deno.readTextFileSync(buildHistoryPath(id)).trimEnd().split("\n").filter((line) => line !== "");

class Refused extends Error {
  constructor(readonly code: number, words: string) {
    super(words);
  }
}

async function begin(method: string, params: Message): Promise<Message> {
  if (!initialized) throw new Refused(-32602, `${method} before initialize`);
  if (CAN.has("nologin")) throw new Refused(-32000, "Authentication required");
  if (!String(params.cwd).startsWith("/") || !Array.isArray(params.mcpServers)) {
    throw new Refused(-32602, "cwd and mcpServers are required");
  }
  if (method === "session/new") {
    session = crypto.randomUUID();
    Deno.writeTextFileSync(buildHistoryPath(session), "");
    return { sessionId: session };
  }
  let told: string[];
  try {
    told = readHistory(params.sessionId);
  } catch {
    throw new Refused(-32602, "no such session");
  }
  session = params.sessionId;
  if (method === "session/load") {
    for (const words of told) chunk(`replayed: ${words}`);
    // A real agent also sends the rest after the response.
    setTimeout(() => chunk("replayed: late"), 50);
  }
  await pause(0);
  return {};
}

async function prompt(params: Message): Promise<Message> {
  if (params.sessionId !== session || params.prompt?.[0]?.type !== "text") {
    throw new Refused(-32602, "bad prompt");
  }
  const text: string = params.prompt[0].text;
  const [, words = ""] = /.*<do>(.*)<\/do>/s.exec(text) ?? [];
  Deno.writeTextFileSync(buildHistoryPath(session), `${words.replaceAll("\n", " ")}\n`, { append: true });
  for (const one of words.split(";")) {
    const [verb = "", ...rest] = one.trim().split(" ");
    const done = await act(verb, rest.join(" "));
    if (done !== null) return done;
  }
  return {
    stopReason: "end_turn",
    usage: { inputTokens: 10 * readHistory(session).length, outputTokens: 5 },
  };
}

async function act(verb: string, words: string): Promise<Message | null> {
  if (verb === "say") { for (const piece of words.split(" ")) chunk(`${piece} `); }
  else if (verb === "recall") chunk(readHistory(session).slice(0, -1).join(" | "));
  else if (verb === "tool") {
    update({
      sessionUpdate: "tool_call",
      toolCallId: "t1",
      title: "Run",
      kind: "execute",
      rawInput: { command: words },
    });
    update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "secret thought" } });
    update({
      sessionUpdate: "tool_call_update",
      toolCallId: "t1",
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: `ran ${words}` } }],
    });
  } else if (verb === "permit") {
    const [kind, ...rest] = words.split(" ");
    const command = rest.join(" ") || "rm -r x";
    const { result } = await request("session/request_permission", {
      sessionId: session,
      toolCall: { toolCallId: "t2", title: "Delete it all", kind, rawInput: { command } },
      options: [
        { optionId: "a-1", name: "Always", kind: "allow_always" },
        { optionId: "a-2", name: "Yes, once", kind: "allow_once" },
        { optionId: "r-1", name: "No", kind: "reject_once" },
      ],
    });
    chunk(`permission ${JSON.stringify(result)}`);
  } else if (verb === "elicit") {
    const { result } = await request("elicitation/create", {
      mode: "form",
      sessionId: session,
      message: "I need to know",
      requestedSchema: {
        type: "object",
        properties: { colour: { type: "string", title: "Which colour?", enum: ["red", "blue"] } },
        required: ["colour"],
      },
    });
    chunk(`elicited ${JSON.stringify(result)}`);
  } else if (verb === "write") {
    const { error } = await request("fs/write_text_file", { sessionId: session, path: "/x", content: "" });
    chunk(`write ${error.code}`);
  } else if (verb === "fail") throw new Refused(-32603, words);
  else if (verb === "stop") return { stopReason: words };
  else if (verb === "die") Deno.exit(7);
  else if (verb === "hang") {
    // Reads the cancel that the client sent before the signal, as an agent does that ends its turn in order.
    let interrupted = false;
    Deno.addSignalListener("SIGINT", () => interrupted = true);
    while (!cancelled) await pause(20);
    if (interrupted) Deno.exit(130);
    chunk("late words");
    return { stopReason: "cancelled" };
  }
  return null;
}

async function answer(message: Message): Promise<void> {
  const { id, method, params } = message;
  try {
    if (method === "initialize") {
      if (CAN.has("mute")) return;
      if (params.protocolVersion !== 1 || params.clientCapabilities?.terminal !== false) {
        throw new Refused(-32602, "bad initialize");
      }
      initialized = true;
      return say({
        id,
        result: {
          protocolVersion: CAN.has("v2") ? 2 : 1,
          agentInfo: { name: "fake", version: "1.0.0" },
          agentCapabilities: {
            loadSession: CAN.has("load"),
            mcpCapabilities: { http: CAN.has("mcp"), sse: false },
            sessionCapabilities: CAN.has("resume") ? { resume: {} } : {},
          },
        },
      });
    }
    const known: Record<string, () => Promise<Message>> = {
      "session/new": () => begin(method, params),
      ...(CAN.has("load") ? { "session/load": () => begin(method, params) } : {}),
      ...(CAN.has("resume") ? { "session/resume": () => begin(method, params) } : {}),
      "session/prompt": () => prompt(params),
    };
    const found = known[method];
    if (found === undefined) throw new Refused(-32601, `no method ${method}`);
    say({ id, result: await found() });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say({ id, error: { code: error.code, message: error.message } });
  }
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message = JSON.parse(line);
    note(message);
    if (message.jsonrpc !== "2.0") Deno.exit(99);
    if (message.method === "session/cancel") cancelled = true;
    else if (message.method === undefined) waiting.get(message.id)?.(message);
    else void answer(message);
  }
}
