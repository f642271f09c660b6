import type { EngineOutcome } from "../engine/engine.ts";

// A shorter value is not treated as a secret: it would be masked inside ordinary words.
const SECRET_MIN_CHARACTERS = 12;

/** The values whose names say that they are keys (reliability SEC-2). */
export function secretsOf(env: Record<string, string>): string[] {
  return Object.entries(env)
    .filter(([name, value]) =>
      /KEY|TOKEN|SECRET|PASSWORD/i.test(name) && value.length >= SECRET_MIN_CHARACTERS
    )
    .map(([, value]) => value);
}

/** The outcome with secrets masked, because an answer is stored and shown as a log is (reliability SEC-3). */
export function withoutSecrets<O extends EngineOutcome>(secrets: readonly string[], outcome: O): O {
  return { ...outcome, text: maskedText(secrets, outcome.text), error: maskedText(secrets, outcome.error) };
}

/** A text with secrets masked. */
export function maskedText(secrets: readonly string[], text: string): string {
  return secrets.reduce(masked, text);
}

const PART_MIN_CHARACTERS = 12;

// An engine keeps only the end of a long error, which may start in the middle of a secret: a token ends with its signature.
function masked(text: string, secret: string): string {
  if (!text.includes(secret.slice(-PART_MIN_CHARACTERS))) return text;
  let safe = text.replaceAll(secret, "*".repeat(secret.length));
  for (let length = secret.length - 1; length >= PART_MIN_CHARACTERS; length--) {
    safe = safe.replaceAll(secret.slice(-length), "*".repeat(length));
  }
  return safe;
}
