import type { ServerDescription } from "../src/domain/call/server_description.ts";
import { Client } from "./client/client.ts";
import { EXIT } from "./terminal/exit.ts";
import type { Io } from "./terminal/io.ts";

const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const LINE_MAX_CHARACTERS = 16 * 1024 * 1024;
// Error codes of JSON-RPC.
const INTERNAL_ERROR = -32_603;
const PARSE_ERROR = -32_700;
const METHOD_NOT_FOUND = -32_601;

/**
 * `svc mcp`: forwards MCP messages between stdin, stdout and the service, one per line, until stdin ends (contract
 * 19). Each call reads the token again, since an agent that stays open gets another token for each run. An agent that starts without a
 * run has no token yet, and learns its tools from the file SVC_TOOLS_FILE.
 */
export async function runMcp(args: string[], io: Io): Promise<number> {
  if (args.length > 0) {
    io.err(
      `svc: unknown argument ${JSON.stringify(args[0])}. Set SVC_URL, and SVC_TOKEN or SVC_TOKEN_FILE.\n`,
    );
    return EXIT.usage;
  }
  const client = new Client(io, {});
  const toolsFile = io.env.SVC_TOOLS_FILE ?? "";
  const open = new Set<Promise<void>>();
  try {
    for await (const line of splitLines(io.stdin)) {
      const known = toolsFile === "" ? null : await answerFrom(toolsFile, line);
      const answer = (known === null ? forward(client, line) : Promise.resolve(known)).then((answers) =>
        answers.forEach((text) => io.out(`${text}\n`))
      );
      open.add(answer);
      void answer.finally(() => open.delete(answer)).catch(() => {});
    }
  } catch (error) {
    io.err(`svc: mcp: ${error instanceof Error ? error.message : error}\n`);
    return EXIT.usage;
  }
  await Promise.allSettled(open);
  return EXIT.done;
}

/** Answers a message that comes before the first call of a tool. Returns null for every other message. */
async function answerFrom(toolsFile: string, line: string): Promise<string[] | null> {
  let message: { id?: unknown; method?: string; params?: { protocolVersion?: string } };
  try {
    message = JSON.parse(line);
  } catch {
    return null;
  }
  const { id, method, params } = message;
  if (method === "notifications/initialized") return [];
  // Only later versions of the protocol have it. The agent then sends `initialize`.
  if (method === "server/discover") return [buildError(id, METHOD_NOT_FOUND, "Method not found")];
  if (method !== "initialize" && method !== "tools/list") return null;
  const { initialize, tools } = JSON.parse(await Deno.readTextFile(toolsFile)) as ServerDescription;
  const [latest] = Object.values(initialize);
  const result = method === "tools/list" ? tools : initialize[params?.protocolVersion ?? ""] ?? latest;
  return [JSON.stringify({ jsonrpc: "2.0", id, result })];
}

/** Forwards one message to the service and returns the response as lines. */
async function forward(client: Client, line: string): Promise<string[]> {
  let id: unknown;
  try {
    id = JSON.parse(line)?.id;
  } catch {
    return [buildError(null, PARSE_ERROR, "the message is not JSON")];
  }
  try {
    const response = await client.post("/mcp", HEADERS, line);
    const text = await response.text();
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    const answers = isStream ? splitEvents(text) : [text.trim()].filter((one) => one.startsWith("{"));
    if (answers.length > 0 && response.ok || id === undefined) return response.ok ? answers : [];
    return [buildError(id, INTERNAL_ERROR, `the service returned ${response.status}: ${text.slice(0, 500)}`)];
  } catch (error) {
    if (id === undefined) return [];
    return [buildError(id, INTERNAL_ERROR, error instanceof Error ? error.message : String(error))];
  }
}

function splitEvents(text: string): string[] {
  return text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
}

function buildError(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

async function* splitLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_MAX_CHARACTERS) {
      throw new Error(`a message is larger than ${LINE_MAX_CHARACTERS} characters`);
    }
    yield* lines.filter((line) => line.trim() !== "");
  }
  if (rest.trim() !== "") yield rest;
}
