import { z } from "zod";
import { readSecretReference, SECRET_NAME, SECRET_NAME_ERROR } from "../account/secret.ts";
import { text } from "../call/field.ts";

/** Limits of the variables of a worker. */
export const WORKER_ENV_MAX = 64;
const ENV_NAME_MAX = 128;
const ENV_VALUE_MAX_BYTES = 16 * 1024;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

// Variables that decide which code a run loads, how git behaves, and how a run reaches the service. Programs read some in
// lower case, too.
const REFUSED = /^(SVC_.*|LD_.*|GIT_.*|.*_PROXY|BASH_ENV|ENV|NODE_OPTIONS|PATH|HOME)$/i;

/** Returns why a worker cannot set a variable, or null. `adapterVariables` are those that its engine sets. */
export function findVariableFault(name: string, adapterVariables: readonly string[] = []): string | null {
  if (REFUSED.test(name)) return "is reserved: the service or the system sets it";
  return adapterVariables.includes(name) ? "is reserved: the engine's adapter sets it" : null;
}

export const variableName = z.string().max(ENV_NAME_MAX).regex(NAME, {
  error: "must be letters, digits and _, and not start with a digit",
});

/** Text, or `secret:<name>`. */
export const variableValue = text(ENV_VALUE_MAX_BYTES).refine((value) => {
  const name = readSecretReference(value);
  return name === null || SECRET_NAME.test(name);
}, { error: `the name after secret: ${SECRET_NAME_ERROR}` });

function buildEnvSchema<V extends z.ZodType>(value: V) {
  return z.record(variableName, value)
    .refine((env) => Object.keys(env).length <= WORKER_ENV_MAX, {
      error: `must be at most ${WORKER_ENV_MAX} variables`,
    })
    .superRefine((env, context) => {
      for (const name of Object.keys(env)) {
        const fault = findVariableFault(name);
        if (fault !== null) context.addIssue({ code: "custom", path: [name], message: fault });
      }
    });
}

/** The variables of a worker's runs: text, or `secret:<name>` for the value of a secret. */
export const workerEnvSchema = buildEnvSchema(variableValue)
  .meta({ description: "variables of its runs: text, or secret:<name>" });

/** A change of variables. Variables that it omits stay unchanged. */
export const workerEnvPatchSchema = buildEnvSchema(variableValue.nullable())
  .meta({ description: "variables to set; null removes one, and others stay unchanged" });

/** Lists the secrets that variables name. */
export function listSecretNames(env: Record<string, string>): string[] {
  return [...new Set(Object.values(env).flatMap((value) => readSecretReference(value) ?? []))];
}

/** The value of a reference for callers who may not see the name of the secret. */
const HIDDEN_REFERENCE = "secret";

/** Hides the name of the secret in a value. */
export function hideReference(value: string): string {
  return readSecretReference(value) === null ? value : HIDDEN_REFERENCE;
}

/** Hides the names of secrets. */
export function hideSecretNames(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, hideReference(value)]));
}
