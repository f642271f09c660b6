import { describe, expect, it, vi } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { buildWalkConfig, createStranger, startReceiver } from "../harness/fakes/stranger.ts";
import { ctl } from "../harness/terminal.ts";
import { listCommands, walkAllCommands } from "../harness/model/walk.ts";

vi.setConfig({ testTimeout: 180_000 });

const FORMS = {
  terminal: { flags: [], terminal: true },
  pipe: { flags: [], terminal: false },
  json: { flags: ["--json"], terminal: false },
  ids: { flags: ["-q"], terminal: false },
} as const;
type Form = keyof typeof FORMS;

/** Runs commands one after the other in one output format, and checks the rules for every output. */
class Script {
  readonly used = new Set<string>();
  readonly #app: App;
  readonly #form: Form;

  constructor(app: App, form: Form) {
    this.#app = app;
    this.#form = form;
  }

  /** Runs a command that succeeds and returns stdout. Its stderr has to match `err`. */
  async run(command: string, args: string[] = [], err: RegExp = /^$/, stdin = ""): Promise<string> {
    this.used.add(command);
    const { flags, terminal } = FORMS[this.#form];
    const called = await ctl(this.#app, [...command.split(" "), ...flags, ...args], { terminal, stdin });
    // On a terminal an empty list says that it is empty.
    const words = terminal && called.out === "" && / (list|approvals)$/.test(command)
      ? /none/
      // A secret that no later request returns, next to the ID.
      : this.#form === "ids" && /^(token|user|webhook) create$|^runner add$/.test(command)
      ? /^((token|password|secret) \S+\n)?$/
      : err;
    expect([command, called.code, readLastingOutput(called.err)]).toEqual([
      command,
      0,
      expect.stringMatching(words),
    ]);
    this.#checkForm(command, called.out);
    return called.out;
  }

  #checkForm(command: string, out: string): void {
    if (this.#form === "json" && command !== "execution logs" && !ANSWERS_NOTHING.has(command)) {
      for (const line of command === "config schema" ? [out] : out.trim().split("\n")) JSON.parse(line);
    }
    // deno-lint-ignore no-control-regex
    if (this.#form !== "terminal") expect([command, /\u001b/.test(out)]).toEqual([command, false]);
    if (out !== "") expect([command, out.endsWith("\n")]).toEqual([command, true]);
    if (this.#form === "ids" && !NO_IDS.has(command)) {
      expect([command, out]).toEqual([command, expect.stringMatching(/^[^\t]+\n$/)]);
    }
  }
}

/** Returns the stderr that remains after a command has ended, without the progress line. */
function readLastingOutput(err: string): string {
  return err.split("\r\u001b[2K").filter((piece) => !/[\u2800-\u28ff]/.test(piece.slice(0, 8))).join("");
}

/** Commands that print only on stderr. */
const ANSWERS_NOTHING = new Set(["login", "logout", "context use"]);

const NO_IDS = new Set([
  ...[
    "execution logs",
    "execution diff",
    "config schema",
    "config show",
    "config validate",
    "session list",
    "session approvals",
  ],
  ...["chat", "login", "logout", "whoami", "context list", "context use", "usage", "queue cancel", "audit"],
  ...[
    "system resume",
    "system check-config",
    "schedule preview",
    "export",
    "apply",
    "diff",
    "import openclaw",
    "import hermes",
  ],
]);

describe("svc ctl, every command once (interface 4.2, contract 6)", () => {
  for (const form of Object.keys(FORMS) as Form[]) {
    it(`in the form for ${form}`, async () => {
      // Only a stored password can be changed.
      await using to = startReceiver();
      await using app = await openApp({
        config: { engines: buildFakeEngines(), auth: { password_hash: "" }, ...buildWalkConfig(to.url) },
      });
      const script = new Script(app, form);
      await walkAllCommands({
        dataDir: app.dataDir,
        call: (route, body, headers) => app.call(route, body, headers),
        settle: () => app.settle(),
        stranger: () => createStranger(app.db),
        until: (event) => app.until(event),
        run: (command, args, err, stdin) => script.run(command, args, err, stdin),
      });
      expect([...script.used].sort()).toEqual((await listCommands()).sort());
    });
  }
});
