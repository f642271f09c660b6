import { listServerSecrets, type McpServers } from "./mcp_server.ts";
import { findRepoSecret, type Repo } from "./repo.ts";
import { listSecretNames } from "./worker_env.ts";

/** The settings of a worker that may name secrets. */
export interface SecretSettings {
  env: Record<string, string>;
  mcp: McpServers;
  repo: Repo | null;
}

/** Lists the secrets that the settings of a worker name. */
export function listWorkerSecrets({ env, mcp, repo }: SecretSettings): string[] {
  const credentials = findRepoSecret(repo);
  const names = [...listSecretNames(env), ...listServerSecrets(mcp)];
  return [...new Set(credentials === null ? names : [...names, credentials])];
}
