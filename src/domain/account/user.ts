import { z } from "zod";
import {
  id,
  ignoreFields,
  NAME_MAX_BYTES,
  nameText,
  parseList,
  refFilter,
  text,
  time,
} from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { chosenPassword, PASSWORD_MAX_BYTES } from "./password.ts";
import { grants } from "../call/scope.ts";
import { type Role, ROLES, USER_ORIGINS } from "../call/vocabulary.ts";

/** Roles are sets of scopes (contract 9). */
export const ROLE_SCOPES: Readonly<Record<Role, readonly string[]>> = {
  viewer: ["read:*"],
  operator: [
    "read:*",
    "write:tasks",
    "write:sessions",
    "write:memory",
    "write:messages",
    "write:executions",
    "write:chat",
    "write:questions",
  ],
  admin: ["*:*"],
};

export const USERS_MAX = 10_000;

export const personName = nameText();

export const userSchema = z.strictObject({
  id,
  name: z.string(),
  role: z.enum(ROLES),
  disabled: z.boolean(),
  origin: z.enum(USER_ORIGINS).meta({
    description:
      "`operator`: from the configuration, always an admin · `oidc`: signs in with the OpenID provider",
  }),
  created_at: time,
  updated_at: time,
  last_login_at: time.nullable(),
}).meta({ id: "User" });
export type User = z.output<typeof userSchema>;

/** Includes the generated password, which no other response shows. */
export const userCreatedSchema = userSchema.extend({ password: z.string().optional() }).meta({
  id: "UserCreated",
});
export type CreatedUser = z.output<typeof userCreatedSchema>;

const role = z.enum(ROLES);

export const userCreateSchema = z.strictObject({
  name: personName,
  role,
  password: chosenPassword.optional().meta({ description: "default: generated and shown once" }),
}).meta({ id: "UserCreate", examples: [{ name: "ada", role: "operator" }] });
export type UserCreate = z.output<typeof userCreateSchema>;

/** A field that the request omits stays unchanged. PUT ignores the other fields that GET shows (contract 1). */
export const userUpdateSchema = z.strictObject({
  name: personName,
  role,
  disabled: z.boolean(),
  ...ignoreFields("id", "origin", "created_at", "updated_at", "last_login_at"),
}).partial().meta({ id: "UserUpdate", examples: [{ role: "viewer" }] });
export type UserUpdate = z.output<typeof userUpdateSchema>;

export const userPasswordSchema = z.strictObject({
  password: chosenPassword,
  current_password: text(PASSWORD_MAX_BYTES).optional().meta({
    description: "required to change your own password",
  }),
}).meta({ id: "UserPassword", examples: [{ password: "a longer secret" }] });
export type UserPassword = z.output<typeof userPasswordSchema>;

export const userListQuery = {
  ref: refFilter.optional(),
  ...buildPageQuery(),
  role: parseList(role).optional(),
};
export type UserFilter = z.output<z.ZodObject<typeof userListQuery>>;

export const userKey = text(NAME_MAX_BYTES * 3).min(1);

/**
 * Returns whether a caller with these scopes may create, change or delete users of this role. Callers cannot manage a role
 * with more scopes than their own.
 */
export function canManageRole(held: readonly string[], role: Role): boolean {
  return ROLE_SCOPES[role].every((scope) => grants(held, scope));
}
