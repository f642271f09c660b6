import { expect, it } from "vitest";
import { createTempDir, startServer } from "../../harness/service/process.ts";

const CLIENTS = 6;
const STALL_MS = 1_200;

async function ask(port: number): Promise<string> {
  try {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(
      new TextEncoder().encode("GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"),
    );
    const buffer = new Uint8Array(1024);
    const size = await connection.read(buffer);
    return new TextDecoder().decode(buffer.subarray(9, size === null ? 9 : 12));
  } catch (error) {
    return String(error);
  }
}

it("clients that connect while a stopping service gets no processor time receive answers [SHD-5]", async () => {
  await using folder = await createTempDir();
  await using server = await startServer({ dataDir: folder.path });
  const port = Number(new URL(server.url).port);
  expect(await ask(port)).toBe("200");
  const end = server.end("SIGTERM");
  // The service waits for a quiet port now.
  await new Promise((resolve) => setTimeout(resolve, 15));
  Deno.kill(server.child.pid, "SIGSTOP");
  const answers = Array.from({ length: CLIENTS }, () => ask(port));
  await new Promise((resolve) => setTimeout(resolve, STALL_MS));
  Deno.kill(server.child.pid, "SIGCONT");
  const seen = await Promise.all(answers);
  expect(seen.filter((answer) => !/^(200|503|ConnectionRefused)/.test(answer))).toEqual([]);
  expect(await end).toMatchObject({ code: 0 });
});
