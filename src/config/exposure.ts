/** A secret in a configuration file that other users of this machine can read. */
interface Exposure {
  path: string;
  /** The key whose value is a secret. */
  key: string;
}

const OTHERS_READ = 0o044;

// Keys whose values are secrets, wherever in the file they stand.
const SECRET = /^\s*['"]?(\w*(secret|token|password|password_hash|api_key))['"]?\s*:\s*\S/im;

/** The first secret in a configuration file that others may read, or null: there is none, or nobody else can. */
export async function findExposure(path: string): Promise<Exposure | null> {
  const { mode } = await Deno.stat(path);
  if (((mode ?? 0) & OTHERS_READ) === 0) return null;
  const [, key] = SECRET.exec(await Deno.readTextFile(path)) ?? [];
  return key === undefined ? null : { path, key };
}
