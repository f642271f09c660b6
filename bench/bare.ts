// The baseline: an empty Deno.serve and an empty program, measured in the same run as the service.

/** A separate server process that answers every request with the same bytes. */
export interface BareServer extends AsyncDisposable {
  url: string;
}

/** Starts an empty Deno.serve that answers `body`. */
export async function bareServer(body: string): Promise<BareServer> {
  const script = `
    const body = new TextEncoder().encode(${JSON.stringify(body)});
    const headers = { "content-type": "application/json" };
    Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, () => new Response(body, { headers }));`;
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, script);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", file],
    stdout: "piped",
    stderr: "null",
    stdin: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const port = new TextDecoder().decode(value).trim();
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
      await reader.cancel();
      await Deno.remove(file);
    },
  };
}

/** Runs an empty program to its end. */
export async function bareProgram(): Promise<void> {
  emptyFile ??= await Deno.makeTempFile({ suffix: ".ts" });
  await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", emptyFile],
    stdout: "null",
    stderr: "null",
  })
    .output();
}

let emptyFile: string | null = null;
