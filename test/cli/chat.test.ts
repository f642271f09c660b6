import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { Shell } from "../harness/shell.ts";
import { ctl, splitWords } from "../harness/terminal.ts";

vi.setConfig({ testTimeout: 180_000 });

const TOLD = expect.stringMatching(/^session [0-9a-f-]{36}\naccepted [0-9a-f-]{36}\n$/);

describe("svc ctl and text on standard input (contract 8.8)", () => {
  it("chat - and task create --instruction - read up to 256 KiB unchanged", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    expect(await ctl(app, "chat -", { stdin: "say from a pipe\n" })).toEqual({
      code: 0,
      out: "from a pipe\n",
      err: TOLD,
    });
    const create = splitWords(
      `task create --message-id m --worker-id ${id} --type immediate --instruction -`,
    );
    const made = await ctl(app, [...create, "--wait"], { stdin: "say 'quoted' $HOME\n\n" });
    expect([made.code, made.out]).toEqual([0, expect.stringContaining("instruction\tsay 'quoted' $HOME\n")]);
    const large = "x".repeat(300_000);
    for (const args of [["chat", "-"], create]) {
      expect(await ctl(app, args, { stdin: large })).toMatchObject({
        code: 2,
        out: "",
        err: expect.stringMatching(/^svc: .*-: the text is longer than 262144 bytes\n$/),
      });
      expect(await ctl(app, args, { stdin: " \n" })).toMatchObject({ code: 2, out: "" });
    }
    expect((await ctl(app, "chat -", { stdin: "say " + "y".repeat(262_000) })).code).toBe(0);
    expect(await ctl(app, "chat")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^svc: a text is required/),
    });
  });

  it("filters take relative times (contract 8.11)", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    await ctl(app, "chat hello");
    const ids = async (...args: string[]) => (await ctl(app, ["execution", "list", "-q", ...args])).out;
    expect(await ids("--started-from", "-1h")).not.toBe("");
    expect(await ids("--started-from", "+1h")).toBe("");
    expect(await ids("--started-to", "1 hour ago")).toBe("");
    expect(await ctl(app, "execution list --started-from soon")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^svc: --started-from: "soon" is not a time/),
    });
  });

  it("waits with a spinner on a terminal that can redraw, and never in a pipe", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const seen = await ctl(app, "chat 'say hi'", {
      terminal: true,
      env: { TERM: "xterm", NO_COLOR: "1" },
    });
    expect(seen).toMatchObject({ code: 0, out: "hi\n" });
    const shown = seen.err.replaceAll("\r\u001b[2K", "<line>");
    expect(shown).toMatch(/<line>. Ada is working/);
    // The screen keeps nothing of the spinner.
    expect(shown).toMatch(/<line>(Ada:\n)?$/);
    const dumb = await ctl(app, "chat 'say hi'", { terminal: true, env: { TERM: "dumb" } });
    expect(dumb).toEqual({
      code: 0,
      out: "hi\n",
      err: expect.stringMatching(/^session \S+\naccepted \S+\nAda:\n$/),
    });
    expect(await ctl(app, "chat 'say hi'")).toEqual({ code: 0, out: "hi\n", err: TOLD });
  });
});

describe.skipIf(!await Shell.has("bash"))("svc ctl chat on a terminal (contract 8.8)", () => {
  it("opens a prompt with a history and multi-line paste; Ctrl-C ends the run, Ctrl-D the chat", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    await using dir = await createTempDir();
    const env = { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: "0", PS1: "$ " };
    await using terminal = await Shell.start("bash --norc -i", dir.path, env);
    await terminal.type("svc ctl chat\n");
    await terminal.until(/Ctrl-D ends the chat\.[^]*> /);
    await terminal.type("say one\r");
    await terminal.until(/Ada:\r?\n+one\r?\n[^]*> /);
    await terminal.type("\u001b[A\u007f\u007f\u007ftwo\r");
    await terminal.until(/Ada:\r?\n+two\r?\n[^]*> /);
    await terminal.type("\u001b[200~say a\nb\u001b[201~");
    await terminal.until(/say a⏎b/);
    await terminal.type("\r");
    await app.until("execution.completed", 3);
    const [sent] = await app.call("GET /api/messages/inbound?page_size=1");
    expect(sent.content).toBe("say a\nb");
    await terminal.until(/> $/);
    await terminal.type("sleep 60\r");
    await app.until("execution.started", 4);
    await terminal.type("\u0003");
    await terminal.until(/Stopped\. You can continue[^]*> $/);
    await terminal.type("say still here\r");
    await terminal.until(/Ada:\r?\n+still here\r?\n/);
    await terminal.type("\u0004");
    await terminal.until(/to continue: svc ctl chat --session [0-9a-f-]{36}[^]*\$ $/);
    await terminal.type("echo code $? > end\n");
    await terminal.type("exit\n");
    while (
      !await Deno.readTextFile(join(dir.path, "end")).then((text) => text === "code 0\n", () => false)
    ) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  it("keeps the mentioned worker, explains /help and renders Markdown (contract 8.8)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    for (const name of ["Ada", "Research"]) await app.call("POST /api/workers", { name });
    await using dir = await createTempDir();
    const env = { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: "0", PS1: "$ ", NO_COLOR: "1" };
    await using terminal = await Shell.start("bash --norc -i", dir.path, env);
    await terminal.type("svc ctl chat\n");
    await terminal.until(/\/help shows the commands\.[^]*> /);
    await terminal.type("/help\r");
    await terminal.until(/@Name <text> +talk to a worker, who then also gets your next lines[^]*> $/);
    expect(await app.call("GET /api/messages/inbound")).toEqual([]);
    await terminal.type("@Research say **one**\r");
    await terminal.until(/Research:\r?\n+one\r?\n[^]*> $/);
    await terminal.type("say two\r");
    await terminal.until(/Research:\r?\n+two\r?\n[^]*> $/);
    await terminal.type("/quit\r");
    await terminal.until(/to continue: svc ctl chat --session/);
    const runs = await app.call("GET /api/executions") as { worker_name: string }[];
    expect(runs.map((run) => run.worker_name)).toEqual(["Research", "Research"]);
  });

  it("shows a question and reads the answer during and after its run (contract 12)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    await using dir = await createTempDir();
    const env = { SVC_DATA_DIR: app.dataDir, SVC_SERVER__PORT: "0", PS1: "$ " };
    await using terminal = await Shell.start("bash --norc -i", dir.path, env);
    // Each typed line follows the name; a reply has none before it.
    await terminal.type("svc ctl chat --worker Ada\n");
    await terminal.until(/> /);
    await terminal.type("svc ctl ask 'Which colour?' --option Red --option Blue --wait 60s\r");
    await terminal.until(
      /Which colour\?[^]*Red[^]*Blue[^]*Answer with an option's number or text[^]*> $/,
      30_000,
    );
    await terminal.type("green\r");
    await terminal.until(/Answer with an option's number or text[^]*> $/);
    await terminal.type("2\r");
    await terminal.until(/Ada:\r?\n+Blue\r?\n[^]*> $/, 30_000);
    await terminal.type("svc ctl ask 'Which name?' > id\r");
    await terminal.until(/Which name\?[^]*Your next line is the answer\.[^]*> $/, 30_000);
    await app.until("execution.completed", 2);
    await terminal.type("Bob, or 'Rob'\r");
    await app.until("question.answered", 2);
    const questions = await app.call("GET /api/questions");
    expect(questions.map(({ answer }: { answer: string }) => answer)).toEqual(["Bob, or 'Rob'", "Blue"]);
    // The agent ignores the answer, but the chat waits for the task and prints its outcome.
    await terminal.until(/svc: task [0-9a-f-]+ failed: [^]*> $/);
    await terminal.type("\u0004");
    await terminal.until(/to continue: svc ctl chat/);
    const said = await app.call("GET /api/messages/inbound");
    expect(said.map(({ content }: { content: string }) => content.split(" ")[0])).toEqual([
      "Bob,",
      "@Ada",
      "2",
      "@Ada",
    ]);
  });
});

describe("svc ctl chat --reply-to (contract 12)", () => {
  it("replies to the question of the message, even with other open questions, and prints how to answer", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Ada" });
    const ask = (words: string) => ctl(app, ["chat", "--session", "work", `svc ctl ask ${words} > id`]);
    const asked = await ask("'Which colour?' --option Red");
    const [question] = await app.call("GET /api/questions");
    expect(asked).toMatchObject({ code: 0, out: expect.stringContaining("Which colour?") });
    expect(asked.err).toContain(`to answer: svc ctl question answer ${question.id} <text>\n`);
    await ask("'Which shape?'");
    const history = await app.call(`GET /api/local/sessions/${question.session_key.slice(6)}/messages`);
    const { id } = history.find(({ question_id }: { question_id: string }) => question_id === question.id);
    const told = await ctl(app, `chat --session work --reply-to ${id} 'light red'`);
    // The agent ignores the answer, which becomes a task.
    expect(told).toMatchObject({
      code: 8,
      err: expect.stringMatching(/^accepted \S+\n[^]*svc: task \S+ failed/),
    });
    expect(await app.call(`GET /api/questions/${question.id}`)).toMatchObject({ answer: "light red" });
    expect(await ctl(app, `chat --reply-to ${id} x`)).toMatchObject({
      code: 2,
      err: "svc: --reply-to requires a text, and --session or --last\n",
    });
    expect((await ctl(app, "chat --last --reply-to x y")).err).toMatch(/^svc: --reply-to: /m);
  });
});
