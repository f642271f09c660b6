import type { BoxUser } from "./box.ts";
import { SpawnError } from "./process.ts";

// A user keeps its id, and every start of a box would wait for another program.
const known = new Map<string, BoxUser>();

/** Finds a user of this machine by name or id. Throws SpawnError for an unknown user and for root. */
export async function findBoxUser(name: string): Promise<BoxUser> {
  const before = known.get(name);
  if (before !== undefined) return before;
  const { code, stdout } = await new Deno.Command("getent", {
    args: ["passwd", "--", name],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).output();
  const [found = "", , uid = "", gid = ""] = new TextDecoder().decode(stdout).trim().split(":");
  if (code !== 0 || found === "") {
    throw new SpawnError(
      `isolation.box.user: no user is called ${name}. Create one: useradd --system ${name}`,
      "isolation",
    );
  }
  if (Number(uid) === 0) throw new SpawnError("isolation.box.user: cannot be root", "isolation");
  const user = { name: found, uid: Number(uid), gid: Number(gid) };
  known.set(name, user);
  return user;
}
