import { dirname, join } from "node:path";
import { load } from "../../src/base/lazy_import.ts";
import { ServiceError } from "../../src/domain/call/error.ts";
import { formatReason } from "../terminal/exit.ts";
import type { Io } from "../terminal/io.ts";

/** A login stored by `svc ctl login` (contract 9). */
export interface Login {
  username: string;
  refresh_token: string;
  /** The latest access token, and its expiry in Unix ms. */
  access_token: string;
  expires_at: number;
}

/** The content of `hosts.yaml`: logins by address, and the selected one. */
interface Logins {
  /** The address that `context use` selected, or "" for the configured service. */
  current: string;
  hosts: Record<string, Login>;
}

const NONE: Logins = { current: "", hosts: {} };

/** Returns the path of `hosts.yaml`, or null without a home directory. */
export function findLoginPath(env: Record<string, string>): string | null {
  const base = env.XDG_CONFIG_HOME || (env.HOME ? join(env.HOME, ".config") : "");
  return base === "" ? null : join(base, "svc", "hosts.yaml");
}

/** Reads the logins. Throws `unauthenticated` for an unreadable file. */
export async function readLogins(io: Io): Promise<Logins> {
  const path = findLoginPath(io.env);
  if (path === null) return NONE;
  let text: string;
  try {
    // A synchronous read avoids a thread, and ctl has nothing else to do meanwhile.
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return NONE;
    throw refuseLoginFile(path, "permission denied");
  }
  try {
    const { parseYaml } = await load<typeof import("../../src/config/yaml.ts")>(
      "../../src/config/yaml.ts",
      import.meta.url,
    );
    const { current, hosts } = parseYaml(text).document.toJS() as Partial<Logins>;
    return { current: typeof current === "string" ? current : "", hosts: hosts ?? {} };
  } catch {
    throw refuseLoginFile(path, "its content is invalid");
  }
}

/** Throws `forbidden` in an agent's run: the logins are the operator's. `action` completes "Cannot ...". */
export function refuseInRun({ env }: Io, action: string): void {
  if (env.SVC_RUN_ID) throw new ServiceError("forbidden", `Cannot ${action}: this is an agent's run`);
}

/** Replaces the logins in a file that only its owner can read. */
export async function updateLogins(io: Io, change: (hosts: Logins) => Logins): Promise<void> {
  const path = findLoginPath(io.env);
  if (path === null) throw refuseLoginFile("hosts.yaml", "neither XDG_CONFIG_HOME nor HOME is set");
  const changed = change(await readLogins(io));
  const { formatYaml } = await load<typeof import("../../src/config/yaml.ts")>(
    "../../src/config/yaml.ts",
    import.meta.url,
  );
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.${Deno.pid}.part`;
  try {
    await Deno.writeTextFile(partial, formatYaml(changed), { mode: 0o600, createNew: true });
    await Deno.rename(partial, path);
  } catch (error) {
    await Deno.remove(partial).catch(() => {});
    throw refuseLoginFile(path, formatReason(error));
  }
}

function refuseLoginFile(path: string, why: string): ServiceError {
  return new ServiceError("unauthenticated", `Cannot use the logins in ${path}: ${why}`);
}
