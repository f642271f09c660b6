import type { DeleteResult } from "../../domain/call/deleted.ts";
import { conflict, invalid, notFound } from "../../domain/call/error.ts";
import type { Page } from "../../domain/call/page.ts";
import {
  type Secret,
  SECRET_NAME,
  SECRET_NAME_ERROR,
  type SecretPut,
  SECRETS_MAX,
  SECRETS_TOTAL_MAX_BYTES,
} from "../../domain/account/secret.ts";
import {
  deleteSecret as deleteSecretRow,
  findSecret,
  insertSecret,
  listSecretGrants,
  listSecrets as listSecretRows,
  replaceGrants,
  type SecretRow,
  updateSecret,
} from "../../store/account/secret.ts";
import type { Database } from "../../store/db/database.ts";
import { listWorkerSecrets } from "../../domain/workers/worker_secrets.ts";
import { listSecretSettings, listWorkerIds } from "../../store/workers/worker.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { formatJson } from "../../domain/call/json.ts";

type SecretDeps = Deps<"db" | "secrets" | "secretReferences">;

/** Lists secrets by name, without their values. */
export async function listSecrets(deps: SecretDeps, page: Page): Promise<Answer<Secret[]>> {
  const { rows, total, next } = await listSecretRows(deps.db, page);
  return answerPage({ json: formatJson(await describeSecrets(deps, rows)), total, next });
}

export async function getSecret(deps: SecretDeps, name: string): Promise<Answer<Secret>> {
  const row = requireFound(await findSecret(deps.db, name), "secret", name);
  const [secret] = await describeSecrets(deps, [row]);
  return answer(requireFound(secret, "secret", name));
}

async function describeSecrets(
  { db, secrets, secretReferences }: SecretDeps,
  rows: readonly Omit<SecretRow, "sealed">[],
): Promise<Secret[]> {
  const names = rows.map(({ name }) => name);
  const [keyId, grants, workers] = await Promise.all([
    secrets.getKeyId(),
    listSecretGrants(db, names),
    listSecretSettings(db),
  ]);
  const users = [
    ...secretReferences,
    ...workers.flatMap(({ id, ...settings }) =>
      listWorkerSecrets(settings).map((secret) => ({ secret, user: `worker:${id}` }))
    ),
  ];
  return rows.map(({ name, key_id, created_at, updated_at, last_used_at }) => ({
    name,
    workers: grants.filter((grant) => grant.name === name).map(({ worker_id }) => worker_id),
    lost: key_id !== keyId,
    used_by: [...new Set(users.filter(({ secret }) => secret === name).map(({ user }) => user))],
    created_at,
    updated_at,
    last_used_at,
  }));
}

/**
 * Creates a secret, or changes its value or the workers that may use it. Idle processes of those workers end before the
 * answer. Throws `invalid_request`, or `conflict` when too many secrets exist.
 */
export async function putSecret(
  deps: SecretDeps & Deps<"clock">,
  call: Call,
  name: string,
  input: SecretPut,
): Promise<Answer<Secret>> {
  const { db, secrets } = deps;
  if (!SECRET_NAME.test(name)) throw invalid("name", SECRET_NAME_ERROR);
  await checkWorkers(db, input.workers ?? []);
  const workerIds = await secrets.change(() => storeSecret(deps, call, name, input));
  // A new grant alone changes nothing for a process.
  if (input.value !== undefined || workerIds.length > 0) await secrets.announce({ name, workerIds });
  const stored = await getSecret(deps, name);
  const late = input.value === undefined
    ? []
    : deps.secretReferences.filter(({ secret, user }) => secret === name && user.startsWith("platform:"));
  const names = [...new Set(late.map(({ user }) => user))].join(", ");
  return names === ""
    ? stored
    : { ...stored, warning: `${names} uses the new value after a restart of the service` };
}

/** Stores the change and returns the workers whose processes may hold an old value. */
async function storeSecret(
  { db, clock, secrets }: Deps<"db" | "clock" | "secrets">,
  call: Call,
  name: string,
  { value, workers }: SecretPut,
): Promise<string[]> {
  const isNew = await findSecret(db, name) === null;
  if (isNew && value === undefined) throw invalid("value", "is required for a new secret");
  const before = await listSecretGrants(db, [name]);
  const sealed = value === undefined ? null : await secrets.seal(name, value);
  const now = clock.now();
  const changed = [...(value === undefined ? [] : ["value"]), ...(workers === undefined ? [] : ["workers"])];
  const data = { name, changed, ...(workers === undefined ? {} : { workers }) };
  await db.writeOr([
    ...(isNew && sealed !== null ? insertSecret(name, sealed, now) : updateSecret(name, sealed, now)),
    ...(workers === undefined ? [] : replaceGrants(name, workers)),
    recordBy(call, now, { kind: isNew ? "secret.created" : "secret.updated", data }),
  ], () =>
    conflict(
      `Cannot store the secret: at most ${SECRETS_MAX} secrets with ${SECRETS_TOTAL_MAX_BYTES} bytes in total are possible. ` +
        "Delete some first.",
    ));
  const holders = before.map(({ worker_id }) => worker_id);
  return value === undefined
    ? holders.filter((id) => workers !== undefined && !workers.includes(id))
    : holders;
}

async function checkWorkers(db: Database, workers: readonly string[]): Promise<void> {
  for (const [index, id] of workers.entries()) {
    const found = await listWorkerIds(db, id);
    if (!found.includes(id)) throw invalid(`workers.${index}`, `no worker has the id ${JSON.stringify(id)}`);
  }
}

/** Deletes a secret. Later runs of workers that name it fail. Throws `not_found`. */
export async function deleteSecret(
  { db, clock, secrets }: Deps<"db" | "clock" | "secrets">,
  call: Call,
  name: string,
): Promise<Answer<DeleteResult>> {
  const workerIds = await secrets.change(async () => {
    const before = await listSecretGrants(db, [name]);
    await db.writeOr([
      ...deleteSecretRow(name),
      recordBy(call, clock.now(), { kind: "secret.deleted", data: { name } }),
    ], () => notFound("secret", name));
    return before.map(({ worker_id }) => worker_id);
  });
  await secrets.announce({ name, workerIds });
  return DELETED;
}
