// Speaks like Claude Code, for one turn or staying open (decision 0011), and records the token, context and
// memory of each turn (reliability CHD-15). The last line of its prompt says what it does.
const LEDGER = Deno.env.get("FAKE_OPEN_LEDGER") ?? "";
const STAYS = Deno.args.includes("--input-format=stream-json");
const RESUMED = Deno.args.includes("--resume");
const SESSION = Deno.args[Deno.args.indexOf(RESUMED ? "--resume" : "--session-id") + 1] ?? "";
const KNOWN = `${Deno.env.get("CLAUDE_CONFIG_DIR")}/${SESSION}.turns`;
const REMEMBERED_MAX = 30;
const ASK_MAX_MS = 2_000;
// Prints the run's variables in a bash that the agent starts.
const ECHO = 'echo "$SVC_EXECUTION_ID $SVC_TASK_ID $SVC_MESSAGE_ID $SVC_SESSION_KEY $SVC_TOKEN"';
const RUN_VARIABLE = /^SVC_(TOKEN|SESSION_KEY|EXECUTION_ID|TASK_ID|MESSAGE_ID)$/;

let past: string[] = [];
let tokenBefore = "";
let interruption = Promise.withResolvers<void>();

function say(line: object): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
}

function note(line: object): void {
  const own = { process: Deno.env.get("SVC_RUN_ID"), stays: STAYS, at: Date.now() };
  Deno.writeTextFileSync(LEDGER, `${JSON.stringify({ ...own, ...line })}\n`, { append: true });
}

function result(text: string, more: object = {}): void {
  const usage = { input_tokens: 1, output_tokens: 1 };
  note({ word: "end" });
  say({ type: "result", subtype: "success", is_error: false, result: text, usage, ...more });
}

/** Returns the token of the run, or null. */
function readToken(): string | null {
  try {
    return Deno.env.get("SVC_TOKEN") ?? Deno.readTextFileSync(Deno.env.get("SVC_TOKEN_FILE") ?? "");
  } catch {
    return null;
  }
}

/** Returns the execution in the token's claims. */
function parseExecution(token: string): string {
  const [, claims = ""] = token.split(".");
  return claims === "" ? "" : JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))).execution_id;
}

/** Returns the status of a request with this token; 0 without a response. */
async function fetchStatus(token: string): Promise<number> {
  try {
    const response = await fetch(`${Deno.env.get("SVC_URL")}/api/auth/whoami`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ASK_MAX_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return 0;
  }
}

async function readBashVariables(): Promise<Record<string, string | undefined>> {
  const bash = new Deno.Command("bash", { args: ["-c", ECHO], stdin: "null", stderr: "null" });
  const { stdout, signal } = await bash.output();
  // Before its exec, the bash looks like an agent, and torture may kill it.
  if (signal !== null) return await readBashVariables();
  const said = new TextDecoder().decode(stdout).trimEnd();
  const [execution, task, message, key, token = ""] = said.split(" ");
  return { execution, task, message, key, token: parseExecution(token) };
}

async function witness(words: string): Promise<void> {
  const token = readToken();
  if (token === null) return note({ word: "blind", words });
  const bash = await readBashVariables();
  const { task, message } = JSON.parse(Deno.readTextFileSync(Deno.env.get("SVC_CONTEXT_FILE") ?? ""));
  note({
    word: "turn",
    worker: Deno.env.get("SVC_WORKER_ID"),
    key: bash.key,
    ...{ words, past: past.slice(-REMEMBERED_MAX) },
    token: parseExecution(token),
    bash,
    context: { words: lastLine(task.instruction), key: message.session_key },
    status: await fetchStatus(token),
    statusBefore: tokenBefore === "" ? null : await fetchStatus(tokenBefore),
  });
  tokenBefore = token;
}

async function turn(text: string): Promise<void> {
  interruption = Promise.withResolvers();
  const words = lastLine(text);
  Deno.writeTextFileSync(KNOWN, `${words}\n`, { append: true });
  say({ type: "system", subtype: "init", session_id: SESSION });
  await witness(words);
  past.push(words);
  await act(words);
}

async function act(words: string): Promise<void> {
  const [verb = "", argument = ""] = words.split(" ");
  const count = Number(argument);
  switch (verb) {
    case "sleep": {
      const slept = new Promise<string>((resolve) => setTimeout(() => resolve("slept"), count * 1_000));
      if (await Promise.race([slept, interruption.promise]) === "slept") return result(words);
      return result("", { is_error: true, subtype: "error_during_execution", errors: ["aborted"] });
    }
    case "exit":
      return Deno.exit(count);
    case "setsid-escape":
    case "fork-storm":
      for (let i = 0; i < (verb === "fork-storm" ? count : 1); i++) leave();
      return result(words);
    case "flood":
      say({ type: "assistant", message: { content: [{ type: "text", text: "x".repeat(count) }] } });
      return result(words);
    case "bad-utf8":
      Deno.stdout.writeSync(Uint8Array.of(0x6f, 0xff, 0xfe, 0x0a));
      return result(words);
    case "env-dump":
      return result(JSON.stringify([Deno.env.toObject(), readToken()]));
    default:
      return result(words);
  }
}

function leave(): void {
  const child = new Deno.Command("setsid", {
    args: ["sleep", "300"],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  child.unref();
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}

/** Reads the session's earlier prompts; false if the session does not exist. */
function remember(): boolean {
  if (!RESUMED) return true;
  try {
    past = Deno.readTextFileSync(KNOWN).trimEnd().split("\n");
    return true;
  } catch {
    say({
      ...{ type: "result", subtype: "error_during_execution", is_error: true },
      errors: [`No conversation found with session ID: ${SESSION}`],
    });
    return false;
  }
}

if (Deno.args[0] === "--version") {
  console.log("2.1.329 (Claude Code)");
  Deno.exit(0);
}
if (!remember()) Deno.exit(1);
if (!STAYS) {
  await turn(await new Response(Deno.stdin.readable).text());
  Deno.exit(0);
}
/** Answers as a spare process, which must not know a run yet. */
function prepare(request_id: string): void {
  const own = Object.keys(Deno.env.toObject()).filter((name) => RUN_VARIABLE.test(name));
  note({ word: "spare", own, words: readToken() ?? "" });
  say({ type: "control_response", response: { subtype: "success", request_id, response: {} } });
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.request?.subtype === "initialize") prepare(message.request_id);
    else if (message.type === "control_request") interruption.resolve();
    else void turn(message.message.content[0].text);
  }
}
Deno.exit(0);
