import { listWorkerSecrets } from "../../domain/workers/worker_secrets.ts";
import type { Database } from "../db/database.ts";
import { findSecretSettings } from "../workers/worker.ts";
import type { SecretStore } from "./secret_store.ts";

/** Reads the values of the secrets that a worker's settings name, to mask them. Leaves out lost and missing ones. */
export async function readWorkerSecrets(
  { db, secrets }: { db: Database; secrets: SecretStore },
  workerId: string,
): Promise<string[]> {
  const names = listWorkerSecrets(await findSecretSettings(db, workerId));
  const found = await Promise.all(names.map((name) => secrets.read(name)));
  return found.flatMap((one) => one.state === "value" ? [one.value] : []);
}
