import type { EngineOutcome } from "../engine/engine.ts";

// A short value is no secret that could be guarded: it would be masked in the middle of words.
const SECRET_MIN_CHARACTERS = 12;

/** The values that, by their names, are an engine's own keys (reliability SEC-2). */
export function secretsOf(env: Record<string, string>): string[] {
  return Object.entries(env)
    .filter(([name, value]) =>
      /KEY|TOKEN|SECRET|PASSWORD/i.test(name) && value.length >= SECRET_MIN_CHARACTERS
    )
    .map(([, value]) => value);
}

/** The outcome with the secrets masked: an answer is stored and shown like a log (reliability SEC-3). */
export function withoutSecrets(secrets: readonly string[], outcome: EngineOutcome): EngineOutcome {
  const mask = (text: string) => secrets.reduce(masked, text);
  return { ...outcome, text: mask(outcome.text), error: mask(outcome.error) };
}

const PART_MIN_CHARACTERS = 12;

// Of a long error an engine keeps the end, and with it perhaps the end of a secret: a token's is its signature.
function masked(text: string, secret: string): string {
  if (!text.includes(secret.slice(-PART_MIN_CHARACTERS))) return text;
  let safe = text.replaceAll(secret, "*".repeat(secret.length));
  for (let length = secret.length - 1; length >= PART_MIN_CHARACTERS; length--) {
    safe = safe.replaceAll(secret.slice(-length), "*".repeat(length));
  }
  return safe;
}
