import { dirname, join } from "node:path";
import { load } from "../../src/base/load.ts";
import { ServiceError } from "../../src/domain/error.ts";
import type { Io } from "../terminal/io.ts";

/** A login that `svc ctl login` keeps (contract 9). */
export interface Login {
  username: string;
  refresh_token: string;
  /** The last access token, and when it expires in Unix ms. */
  access_token: string;
  expires_at: number;
}

/** What `hosts.yaml` holds: logins by the address of their service, and which of them is used. */
interface Logins {
  /** Address of the context that `context use` chose, or "" for the service of this machine. */
  current: string;
  hosts: Record<string, Login>;
}

const NONE: Logins = { current: "", hosts: {} };

/** `$XDG_CONFIG_HOME/svc/hosts.yaml`, else below `~/.config`; null without a home. */
export function findLoginPath(env: Record<string, string>): string | null {
  const base = env.XDG_CONFIG_HOME || (env.HOME ? join(env.HOME, ".config") : "");
  return base === "" ? null : join(base, "svc", "hosts.yaml");
}

/** Reads the logins; none when there is no file. Throws ServiceError `unauthenticated` for one that cannot be read. */
export async function readLogins(io: Io): Promise<Logins> {
  const path = findLoginPath(io.env);
  if (path === null) return NONE;
  let text: string;
  try {
    // Not asynchronously: a call of ctl waits for nothing else, and would pay for a thread at each file.
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return NONE;
    throw refuseLoginFile(path, "this user may not read it");
  }
  try {
    const { parseYaml } = await load<typeof import("../../src/config/yaml.ts")>(
      "../../src/config/yaml.ts",
      import.meta.url,
    );
    const { current, hosts } = parseYaml(text).document.toJS() as Partial<Logins>;
    return { current: typeof current === "string" ? current : "", hosts: hosts ?? {} };
  } catch {
    throw refuseLoginFile(path, "it is not what svc ctl login writes");
  }
}

/** Changes the logins. The file is this user's alone, and replaced as a whole. */
export async function updateLogins(io: Io, change: (hosts: Logins) => Logins): Promise<void> {
  const path = findLoginPath(io.env);
  if (path === null) throw refuseLoginFile("hosts.yaml", "neither XDG_CONFIG_HOME nor HOME is set");
  const changed = change(await readLogins(io));
  const { yamlText } = await load<typeof import("../../src/config/yaml.ts")>(
    "../../src/config/yaml.ts",
    import.meta.url,
  );
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.${Deno.pid}.part`;
  try {
    await Deno.writeTextFile(partial, yamlText(changed), { mode: 0o600, createNew: true });
    await Deno.rename(partial, path);
  } catch (error) {
    await Deno.remove(partial).catch(() => {});
    throw refuseLoginFile(
      path,
      error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error),
    );
  }
}

function refuseLoginFile(path: string, why: string): ServiceError {
  return new ServiceError("unauthenticated", `Cannot use the logins in ${path}: ${why}`);
}
