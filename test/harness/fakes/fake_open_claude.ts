import { dirname } from "node:path";

// Speaks like Claude Code with a process that stays open (decision 0011): each line of stdin is a turn with a
// result. The last line of its text says what it does.
const given = (flag: string) => Deno.args[Deno.args.indexOf(flag) + 1] ?? "";
if (Deno.args[0] === "--version") {
  console.log("2.1.329 (Claude Code)");
  Deno.exit(0);
}
const resumed = Deno.args.includes("--resume");
const session = given(resumed ? "--resume" : "--session-id");
const known = `${Deno.env.get("CLAUDE_CONFIG_DIR")}/${session}.turns`;
const TOKEN_FILE = Deno.env.get("SVC_TOKEN_FILE") ?? "";
const encoder = new TextEncoder();
let turns = 0;
let kept = "";
let early = "nothing";
let mood: string = "well";
let interruption = Promise.withResolvers<void>();

/** Prints `before` and the line in one write. */
function say(line: object, before = ""): void {
  Deno.stdout.writeSync(encoder.encode(`${before}${JSON.stringify(line)}\n`));
}
function result(text: string, more: object = {}, before = ""): void {
  const usage = { input_tokens: 10, output_tokens: 2 };
  say({
    ...{ type: "result", subtype: "success", is_error: false, result: text, usage },
    ...{ total_cost_usd: turns / 2, ...more },
  }, before);
}
const token = () => Deno.readTextFileSync(TOKEN_FILE);
async function whoami(by: string): Promise<string> {
  const headers = { authorization: `Bearer ${by}` };
  const response = await fetch(`${Deno.env.get("SVC_URL")}/api/auth/whoami`, { headers });
  await response.body?.cancel();
  return String(response.status);
}

interface PermissionAnswer {
  behavior: string;
  message: string;
}
const permissions = new Map<string, (answer: PermissionAnswer) => void>();
function askPermission(tool_name: string, input: object): Promise<PermissionAnswer> {
  const request_id = crypto.randomUUID();
  const { promise, resolve } = Promise.withResolvers<PermissionAnswer>();
  permissions.set(request_id, resolve);
  say({ type: "control_request", request_id, request: { subtype: "can_use_tool", tool_name, input } });
  return promise;
}

async function turn(text: string): Promise<void> {
  turns++;
  interruption = Promise.withResolvers();
  const last = text.trim().split("\n").at(-1) ?? "";
  Deno.writeTextFileSync(known, `${last}\n`, { append: true });
  say({ type: "system", subtype: "init", session_id: session });
  // How long the model takes.
  await new Promise((resolve) => setTimeout(resolve, 100));
  const [verb = "", ...rest] = last.split(" ");
  const words = rest.join(" ");
  switch (verb) {
    case "pid":
      return result(`${Deno.pid} ${turns}`);
    case "bash": {
      const { stdout } = await new Deno.Command("bash", { args: ["-c", words] }).output();
      return result(new TextDecoder().decode(stdout).trim());
    }
    case "cwd":
      return result(`${Deno.readLinkSync("/proc/self/cwd")} ${turns}`);
    case "deep": {
      const content = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
      const line = `{"type":"user","message":{"content":[{"type":"tool_result","content":${content}}]}}\n`;
      return result(`${Deno.pid} ${turns}`, {}, line);
    }
    case "env":
      return result(Deno.env.get(words) ?? "nothing");
    case "early":
      return result(early);
    case "recall":
      return result(Deno.readTextFileSync(known).trim().split("\n").join(" | "));
    case "keep":
      kept = token();
      return result(await whoami(kept));
    case "kept":
      return result(`${await whoami(kept)} ${await whoami(token())}`);
    case "ask": {
      const command = new Deno.Command(Deno.env.get("SVC_CTL") ?? "", { args: ["ctl", "ask", words] });
      const { stdout, stderr } = await command.output();
      const said = new TextDecoder();
      return result(`${said.decode(stdout)}${said.decode(stderr)}`.trim());
    }
    case "leave": {
      const child = new Deno.Command("sleep", {
        args: ["300"],
        stdin: "null",
        stdout: "null",
        stderr: "null",
      });
      return result(`${Deno.pid} ${child.spawn().pid}`);
    }
    case "hide": {
      const nothing = { stdin: "null", stdout: "null", stderr: "null" } as const;
      const { pid } = new Deno.Command("setsid", { args: ["env", "-i", "sleep", "300"], ...nothing }).spawn();
      while (Deno.readTextFileSync(`/proc/${pid}/environ`) !== "") {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return result(`${Deno.pid} ${turns}`);
    }
    case "works":
      setTimeout(() => say({ type: "system", subtype: "init", session_id: session }), 200);
      return result(`${Deno.pid} ${turns}`);
    // Asks before each call: `call <tool> <path>` creates the file, several calls are separated by `;`.
    case "call": {
      const done: string[] = [];
      await Promise.all(
        last.split(";").map(async (one) => {
          const [, tool = "", path = "", ...more] = one.trim().split(" ");
          const input = { file_path: path, ...(more.length === 0 ? {} : { content: more.join(" ") }) };
          const answer = await askPermission(tool, input);
          if (answer.behavior === "allow") Deno.writeTextFileSync(path, ".", { append: true });
          done.push(answer.behavior === "allow" ? "allow" : answer.message);
        }),
      );
      return result(done.join(" | "));
    }
    case "until":
      while (!await Deno.stat(words).then(() => true, () => false)) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return result("went on");
    case "hang":
      await interruption.promise;
      return result("", { is_error: true, subtype: "error_during_execution", errors: ["aborted"] });
    case "stuck":
      return;
    case "dies":
    case "deaf":
    case "slow":
    case "slower":
      mood = verb;
      return result(`${Deno.pid} ${turns}`);
    default:
      return result(`said ${text.length}`);
  }
}

// A spare process notes what it knows before its first turn.
function prepare({ request_id }: { request_id: string }): void {
  early = JSON.stringify([Deno.args, Deno.env.toObject(), [...Deno.readDirSync(dirname(TOKEN_FILE))]]);
  say({ type: "control_response", response: { subtype: "success", request_id, response: {} } });
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    if (mood === "dies") Deno.exit(9);
    if (mood === "deaf") continue;
    const message = JSON.parse(line);
    if (message.type === "control_request" && message.request.subtype === "initialize") prepare(message);
    else if (message.type === "control_request") interruption.resolve();
    else if (message.type === "control_response") {
      const { request_id, response } = message.response;
      permissions.get(request_id)?.(response);
      permissions.delete(request_id);
    } else if (message.type === "user") {
      if (message.uuid !== undefined) say({ ...message, isReplay: true });
      void turn(message.message.content[0].text);
    } else Deno.exit(98);
  }
}
if (mood === "slow" || mood === "slower") {
  Deno.writeTextFileSync(`${known}.leaving`, "");
  await new Promise((resolve) => setTimeout(resolve, mood === "slow" ? 500 : 8_000));
  Deno.writeTextFileSync(known, "left\n", { append: true });
}
