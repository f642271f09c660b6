import { mayCall } from "../../domain/call/scope.ts";
import type { Check } from "../../domain/system/system.ts";
import { listWorkerSecrets } from "../../domain/workers/worker_secrets.ts";
import { listAllSecrets, listSecretGrants } from "../../store/account/secret.ts";
import { listSecretSettings } from "../../store/workers/worker.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

const FAULTS_SHOWN = 20;

/** Finds secrets that cannot be read, and users of secrets that do not exist or are not granted to them. */
export async function checkSecrets(
  { db, secrets, secretReferences }: Deps<"db" | "secrets" | "secretReferences">,
  call: Call,
): Promise<Omit<Check, "name">> {
  const [all, lost, workers] = await Promise.all([
    listAllSecrets(db),
    secrets.listLost(),
    listSecretSettings(db),
  ]);
  const known = new Set(all.map(({ name }) => name));
  const granted = new Set(
    (await listSecretGrants(db, [...known])).map(({ name, worker_id }) => `${worker_id} ${name}`),
  );
  const faults = [
    ...lost.map((name) => `${name} is lost: another signing key encrypted it`),
    ...secretReferences.filter(({ secret }) => !known.has(secret))
      .map(({ secret, user }) => `${user} names ${secret}, which does not exist`),
    ...workers.flatMap(({ id, name, ...settings }) =>
      listWorkerSecrets(settings).filter((secret) => !granted.has(`${id} ${secret}`)).map((secret) =>
        `worker ${name} names ${secret}, which ${
          known.has(secret) ? "is not granted to it" : "does not exist"
        }`
      )
    ),
  ];
  if (faults.length === 0) return { status: "ok", detail: `${all.length} secrets, all readable`, hint: "" };
  // Only people who may change secrets see their names.
  const shown = mayCall(call.caller, "write:secrets")
    ? faults.slice(0, FAULTS_SHOWN).join("; ")
    : `${faults.length} faults; only an admin sees the names of secrets`;
  return {
    status: "fail",
    detail: shown,
    hint:
      "svc ctl secret set <secret> or svc ctl secret grant <secret> --worker <worker> (docs/how-to/keep-secrets.md)",
  };
}
