import { digest } from "../../../src/base/bytes.ts";
import type { Database } from "../../../src/store/db/database.ts";
import { insertPairing } from "../../../src/store/chat/platform.ts";

/** Returns the configuration of the platform and the webhook of walkAllCommands(). */
export function buildWalkConfig(url: string) {
  const secret = `whsec_${btoa("a secret of twenty-four bytes and more")}`;
  return {
    launchers: { gpu: { labels: ["slurm"], command: ["false"] } },
    platforms: { chats: { kind: "webhook" as const, worker: "Ada" } },
    webhooks: [{ name: "out", url, secret, events: ["system.restored"], allow_private: true }],
  };
}

/** Creates a stranger on the platform `chats` and returns the pairing code. */
export async function createStranger(db: Database): Promise<string> {
  const row = { platform: "chats", sender: "s", name: "Eve", code_hash: digest("ABCD2345") };
  await db.write(insertPairing({ ...row, created_at: Date.now(), expires_at: Date.now() + 3_600_000 }));
  return "ABCD-2345";
}

/** Starts a server that accepts every request. */
export function startReceiver(): { url: string } & AsyncDisposable {
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response("taken"),
  );
  return { url: `http://127.0.0.1:${server.addr.port}/`, [Symbol.asyncDispose]: () => server.shutdown() };
}
