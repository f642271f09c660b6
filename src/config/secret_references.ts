import { readSecretReference } from "../domain/account/secret.ts";
import { locateSecret, PLATFORM_SECRETS } from "./platform.ts";
import type { Config } from "./schema.ts";

/** A part of the configuration that names a secret: `platform:<name>`, `webhook:<name>`, `engine:<name>` or `telemetry`. */
export interface SecretReference {
  secret: string;
  user: string;
}

/** Lists the parts of the configuration that name a secret. */
export function listSecretReferences({ platforms, webhooks, engines, telemetry }: Config): SecretReference[] {
  const { default: _default, ...named } = engines;
  return [
    ...Object.entries(platforms).flatMap(([name, platform]) =>
      listReferences(
        `platform:${name}`,
        PLATFORM_SECRETS.map((secret) => {
          const found = locateSecret(platform, secret);
          return found?.holder[found.key];
        }),
      )
    ),
    ...webhooks.flatMap(({ name, secret }) => listReferences(`webhook:${name}`, [secret])),
    ...Object.entries(named).flatMap(([name, { env }]) =>
      listReferences(`engine:${name}`, Object.values(env))
    ),
    ...listReferences("telemetry", Object.values(telemetry.headers)),
  ];
}

function listReferences(user: string, values: readonly unknown[]): SecretReference[] {
  return values.flatMap((value) => {
    const secret = typeof value === "string" ? readSecretReference(value) : null;
    return secret === null ? [] : [{ secret, user }];
  });
}
