import { findRepoSecret, getRepoAddress, type Repo } from "../domain/workers/repo.ts";
import type { Remote } from "../files/git/remote.ts";
import { listGrantedSecrets } from "../store/account/secret.ts";
import type { SecretStore } from "../store/account/secret_store.ts";
import type { Database } from "../store/db/database.ts";
import { SetupError } from "./variables.ts";

/** Returns the remote repository of a worker with its credentials. Throws SetupError for a secret that the worker may not use. */
export async function resolveRemote(
  { db, secrets }: { db: Database; secrets: SecretStore },
  workerId: string,
  repo: Repo,
): Promise<Remote> {
  const name = findRepoSecret(repo);
  const address = getRepoAddress(repo);
  if (name === null) return { address, credentials: null };
  if (!(await listGrantedSecrets(db, workerId, [name])).has(name)) {
    throw new SetupError(
      "Cannot use the repository: its worker may not use the secret of repo.credentials. svc ctl system doctor names it.",
    );
  }
  const found = await secrets.read(name);
  if (found.state === "value") return { address, credentials: found.value };
  throw new SetupError(
    `Cannot use the repository: the secret of repo.credentials is ${found.state}. svc ctl system doctor names it.`,
  );
}
