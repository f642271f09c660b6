interface Exposure {
  path: string;
  key: string;
}

const OTHERS_READ = 0o044;

const SECRET = /^\s*['"]?(\w*(secret|token|password|password_hash|api_key))['"]?\s*:\s*\S/im;

/** Finds the first secret in a configuration file that other users can read, or null. */
export async function findExposure(path: string): Promise<Exposure | null> {
  const { mode } = await Deno.stat(path);
  if (((mode ?? 0) & OTHERS_READ) === 0) return null;
  const [, key] = SECRET.exec(await Deno.readTextFile(path)) ?? [];
  return key === undefined ? null : { path, key };
}
