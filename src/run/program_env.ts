const NAMES = ["PATH", "HOME", "LANG", "TZ"];

/** Returns the service's variables for a program of the configuration (contract 11). */
export function readProgramEnv(): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  }));
}
