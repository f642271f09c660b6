import { join } from "node:path";
import { endProcess, SVC } from "./service/process.ts";
import { WAIT_MAX_MS } from "./wait.ts";

/** An interactive shell on a pseudo terminal with `svc` on its PATH. */
export class Shell {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #seen = "";
  #wake: () => void = () => {};

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#writer = child.stdin.getWriter();
    void this.#read(child.stdout);
  }

  /** Returns whether this machine has the shell, and `script`, which gives it a terminal. */
  static async has(shell: string): Promise<boolean> {
    const { success } = await new Deno.Command("sh", {
      args: ["-c", `command -v ${shell} && command -v script`],
      stdout: "null",
      stderr: "null",
    }).output();
    return success;
  }

  /** Starts `command`, e.g. `bash --norc -i`, in `folder`, which gets a `bin/svc`. */
  static async start(command: string, folder: string, env: Record<string, string>): Promise<Shell> {
    const bin = join(folder, "bin");
    await Deno.mkdir(bin, { recursive: true });
    const words = SVC.map((word) => `'${word}'`).join(" ");
    await Deno.writeTextFile(join(bin, "svc"), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
    const child = new Deno.Command("script", {
      args: ["-qec", command, "/dev/null"],
      cwd: folder,
      clearEnv: true,
      env: {
        PATH: `${bin}:${Deno.env.get("PATH") ?? ""}`,
        HOME: folder,
        // In another home Deno would compile svc anew for each command.
        DENO_DIR: Deno.env.get("DENO_DIR") ?? join(Deno.env.get("HOME") ?? "/", ".cache/deno"),
        TERM: "xterm",
        LANG: "C.UTF-8",
        ...env,
      },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    return new Shell(child);
  }

  async #read(output: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of output) {
      // Drops colors and cursor movements.
      // deno-lint-ignore no-control-regex
      this.#seen += decoder.decode(chunk, { stream: true }).replace(/\u001b\[[0-9;?]*[A-Za-z]|\0/g, "");
      this.#wake();
    }
  }

  /** Types keys; `\t` is TAB. */
  async type(keys: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(keys));
  }

  /** Resolves with the output since the last call, once it matches. */
  async until(pattern: RegExp, timeoutMs = WAIT_MAX_MS): Promise<string> {
    const end = performance.now() + timeoutMs;
    while (!pattern.test(this.#seen)) {
      if (performance.now() > end) {
        throw new Error(`${pattern} did not come: ${JSON.stringify(this.#seen.slice(-2000))}`);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 100);
      });
    }
    const shown = this.#seen;
    this.#seen = "";
    return shown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await endProcess(this.#child, "SIGKILL");
  }
}
