import { z } from "zod";
import { id, listOf, NAME_MAX_BYTES, nameText, text, time } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";
import { chosenPassword, PASSWORD_MAX_BYTES } from "./password.ts";
import { grants } from "../call/scope.ts";
import { type Role, ROLES, USER_ORIGINS } from "../call/vocabulary.ts";

/** Roles are scopes (contract 9). */
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

/** How many users there may be. */
export const USERS_MAX = 10_000;

/** The name of a user or token (contract 8.1). */
export const personName = nameText();

/** A user as the API shows it (contract 9). */
export const userSchema = z.strictObject({
  id,
  name: z.string(),
  role: z.enum(ROLES),
  disabled: z.boolean(),
  origin: z.enum(USER_ORIGINS).meta({
    description:
      "`operator`: of the configuration, an admin for ever · `oidc`: signs in with the OpenID provider",
  }),
  created_at: time,
  updated_at: time,
  last_login_at: time.nullable(),
}).meta({ id: "User" });

export type User = z.output<typeof userSchema>;

/** The answer to a new user: its password is shown here once, when it was made. */
export const userCreatedSchema = userSchema.extend({ password: z.string().optional() }).meta({
  id: "UserCreated",
});

export type UserCreated = z.output<typeof userCreatedSchema>;

const role = z.enum(ROLES);

/** Body of POST /api/users (contract 9). */
export const userCreateSchema = z.strictObject({
  name: personName,
  role,
  password: chosenPassword.optional().meta({ description: "left out: one is made and shown once" }),
}).meta({ id: "UserCreate", examples: [{ name: "ada", role: "operator" }] });

export type UserCreate = z.output<typeof userCreateSchema>;

/** Body of PUT /api/users/:id_or_name: absent is unchanged; what GET shows beyond this is ignored (contract 1). */
export const userUpdateSchema = z.strictObject({
  name: personName,
  role,
  disabled: z.boolean(),
  id: z.unknown(),
  origin: z.unknown(),
  created_at: z.unknown(),
  updated_at: z.unknown(),
  last_login_at: z.unknown(),
}).partial().meta({ id: "UserUpdate", examples: [{ role: "viewer" }] });

export type UserUpdate = z.output<typeof userUpdateSchema>;

/** Body of PUT /api/users/:id_or_name/password. */
export const userPasswordSchema = z.strictObject({
  password: chosenPassword,
  current_password: text(PASSWORD_MAX_BYTES).optional().meta({ description: "needed for one's own" }),
}).meta({ id: "UserPassword", examples: [{ password: "a longer secret" }] });

export type UserPassword = z.output<typeof userPasswordSchema>;

/** Query of GET /api/users. */
export const userListQuery = {
  ...pageQuery(),
  role: listOf(role).optional(),
};

export type UserFilter = z.output<z.ZodObject<typeof userListQuery>>;

/** A user's id or name in a path. */
export const userKey = text(NAME_MAX_BYTES * 3).min(1);

/** Whether somebody with these scopes may make, change or remove a user of this role: nobody reaches above themselves. */
export function mayGovern(held: readonly string[], role: Role): boolean {
  return ROLE_SCOPES[role].every((scope) => grants(held, scope));
}
