import { z } from "zod";
import { id, textsOf, time } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";
import { grants, scope } from "../call/scope.ts";
import { personName } from "./user.ts";

/** How long a token counts when nobody says otherwise (contract 9). */
export const TOKEN_LIFE_MS = 90 * 24 * 60 * 60 * 1000;

/** How many tokens one user may have. */
export const TOKENS_PER_USER_MAX = 100_000;

const SCOPES_MAX = 100;

/** A token as lists show it: never its secret (contract 9). */
export const tokenSchema = z.strictObject({
  id,
  name: z.string(),
  user_id: id,
  user_name: z.string(),
  scopes: z.array(z.string()),
  expires_at: time.nullable(),
  created_at: time,
  last_used_at: time.nullable().meta({ description: "to the minute" }),
}).meta({ id: "Token" });

export type Token = z.output<typeof tokenSchema>;

/** The answer to a new token: its secret is shown here once. */
export const tokenCreatedSchema = tokenSchema.extend({ token: z.string() }).meta({ id: "TokenCreated" });

/** Body of POST /api/tokens (contract 9). */
export const tokenCreateSchema = z.strictObject({
  name: personName,
  scopes: z.array(scope).min(1, { error: "must name at least one scope" }).max(SCOPES_MAX),
  expires_at: time.nullable().optional().meta({ description: "null: never; left out: in 90 days" }),
}).meta({ id: "TokenCreate", examples: [{ name: "ci", scopes: ["read:tasks", "write:tasks"] }] });

export type TokenCreate = z.output<typeof tokenCreateSchema>;

/** Query of GET /api/tokens. */
export const tokenListQuery = {
  ...pageQuery(),
  user: textsOf().optional().meta({ type: "string", description: "ids or names of owners, any of them" }),
};

/** What is left of `scopes` for an owner who holds `held`: only what both give (contract 9). */
export function scopesWithin(scopes: readonly string[], held: readonly string[]): string[] {
  const both = scopes.flatMap((one) => held.map((other) => common(one, other)));
  return [...new Set(both.filter((entry) => entry !== null))];
}

/** The first of `scopes` that goes beyond what is held, or undefined. */
export function beyond(scopes: readonly string[], held: readonly string[]): string | undefined {
  return scopes.find((one) => !grants(held, one));
}

function common(one: string, other: string): string | null {
  const [verb = "", resource = ""] = one.split(":");
  const [otherVerb = "", otherResource = ""] = other.split(":");
  const [bothVerb, bothResource] = [narrower(verb, otherVerb), narrower(resource, otherResource)];
  return bothVerb === null || bothResource === null ? null : `${bothVerb}:${bothResource}`;
}

function narrower(one: string, other: string): string | null {
  if (one === other || other === "*") return one;
  return one === "*" ? other : null;
}

export type TokenFilter = z.output<z.ZodObject<typeof tokenListQuery>>;
export type TokenCreated = z.output<typeof tokenCreatedSchema>;
