const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((
  name,
) => [name, name.toLowerCase()]);
const LOOPBACK = [
  ...["localhost", ".localhost", "localhost."],
  ...["127.0.0.1", "127.0.0.0/8", "::1", "::ffff:127.0.0.0/104"],
];

/**
 * Returns `NO_PROXY` and `no_proxy` with every loopback address and `hosts` added, or {} without a proxy. A program reads only one of the
 * two names, so both get the same entries (contract-3 20.6).
 */
export function buildProxyBypass(
  env: Record<string, string | undefined>,
  hosts: readonly string[] = [],
): Record<string, string> {
  if (!PROXY_VARIABLES.some((name) => env[name])) return {};
  const known = [env.NO_PROXY, env.no_proxy].flatMap((list) => (list ?? "").split(","));
  const entries = [...known.map((entry) => entry.trim()), ...LOOPBACK, ...hosts].filter((entry) =>
    entry !== ""
  );
  const list = [...new Set(entries)].join(",");
  return { NO_PROXY: list, no_proxy: list };
}

/** Builds the variables by which programs in a box find the service and its proxy, at the relay's port (contract-3 21). */
export function buildRelayVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const proxies = { HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url, https_proxy: url };
  return { SVC_URL: url, ...proxies, ...buildProxyBypass(proxies), NODE_USE_ENV_PROXY: "1" };
}

/** Makes HTTP clients of this process connect directly to loopback addresses and `hosts`. Applies to clients that are created later. */
export function bypassProxy(...hosts: string[]): void {
  for (const [name, list] of Object.entries(buildProxyBypass(Deno.env.toObject(), hosts))) {
    Deno.env.set(name, list);
  }
}
