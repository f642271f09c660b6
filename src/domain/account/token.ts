import { z } from "zod";
import { id, parseTextList, refFilter, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { findUnknownScope, grants, scope } from "../call/scope.ts";
import { personName } from "./user.ts";

/** Default lifetime of a token (contract 9). */
export const TOKEN_LIFE_MS = 90 * 24 * 60 * 60 * 1000;

export const TOKENS_PER_USER_MAX = 100_000;

const SCOPES_MAX = 100;

/** A token as lists show it, without its secret. */
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

/** Includes the secret, which no other response shows. */
export const tokenCreatedSchema = tokenSchema.extend({ token: z.string() }).meta({ id: "TokenCreated" });

export const tokenCreateSchema = z.strictObject({
  name: personName,
  scopes: z.array(scope.refine((one) => findUnknownScope(one) === null, {
    error: ({ input }) => findUnknownScope(String(input)) ?? undefined,
  })).min(1, { error: "must name at least one scope" }).max(SCOPES_MAX),
  expires_at: time.nullable().optional().meta({ description: "null: never; default: in 90 days" }),
}).meta({ id: "TokenCreate", examples: [{ name: "ci", scopes: ["read:tasks", "write:tasks"] }] });
export type TokenCreate = z.output<typeof tokenCreateSchema>;

export const tokenListQuery = {
  ref: refFilter.optional(),
  ...buildPageQuery(),
  user: parseTextList().optional().meta({
    type: "string",
    description: "ids or names of owners; any of them matches",
  }),
};

/** Returns the scopes that both lists grant: a token never exceeds its owner (contract 9). */
export function intersectScopes(scopes: readonly string[], held: readonly string[]): string[] {
  const both = scopes.flatMap((one) => held.map((other) => intersectScope(one, other)));
  return [...new Set(both.filter((entry) => entry !== null))];
}

/** Returns the first of `scopes` that `held` does not grant, or undefined. */
export function findExcessScope(scopes: readonly string[], held: readonly string[]): string | undefined {
  return scopes.find((one) => !grants(held, one));
}

function intersectScope(one: string, other: string): string | null {
  const [verb = "", resource = ""] = one.split(":");
  const [otherVerb = "", otherResource = ""] = other.split(":");
  const [bothVerb, bothResource] = [pickNarrower(verb, otherVerb), pickNarrower(resource, otherResource)];
  return bothVerb === null || bothResource === null ? null : `${bothVerb}:${bothResource}`;
}

function pickNarrower(one: string, other: string): string | null {
  if (one === other || other === "*") return one;
  return one === "*" ? other : null;
}

export type TokenFilter = z.output<z.ZodObject<typeof tokenListQuery>>;
export type CreatedToken = z.output<typeof tokenCreatedSchema>;
