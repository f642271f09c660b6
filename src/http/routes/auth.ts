import { z } from "zod";
import { login, logout, refresh } from "../../api/auth.ts";
import { NAME_MAX_BYTES, text } from "../../domain/field.ts";
import { route } from "../route.ts";

const PASSWORD_MAX_BYTES = 1_000;
const expiresIn = z.int().meta({ description: "seconds" });

export const authRoutes = [
  route({
    method: "POST",
    path: "/api/auth/login",
    access: "public",
    operation: "auth.login",
    summary: "Log in",
    body: z.strictObject({ username: text(NAME_MAX_BYTES), password: text(PASSWORD_MAX_BYTES) })
      .meta({ id: "Login", examples: [{ username: "admin", password: "correct horse battery staple" }] }),
    status: 200,
    response: z.strictObject({
      access_token: z.string(),
      refresh_token: z.string(),
      expires_in: expiresIn,
      token_type: z.literal("Bearer"),
    }).meta({ id: "LoginAnswer" }),
    handle: async ({ service, body, address }) => ({
      value: await login(service, body.username, body.password, address),
    }),
  }),
  route({
    method: "POST",
    path: "/api/auth/refresh",
    access: "public",
    operation: "auth.refresh",
    summary: "Get a new access token",
    body: z.strictObject({ refresh_token: text(PASSWORD_MAX_BYTES) }).meta({
      id: "Refresh",
      examples: [{ refresh_token: "from the login" }],
    }),
    status: 200,
    response: z.strictObject({
      access_token: z.string(),
      expires_in: expiresIn,
      token_type: z.literal("Bearer"),
    }).meta({ id: "RefreshAnswer" }),
    handle: async ({ service, body }) => ({ value: await refresh(service, body.refresh_token) }),
  }),
  route({
    method: "POST",
    path: "/api/auth/logout",
    access: "public",
    operation: "auth.logout",
    summary: "Revoke a refresh token",
    body: z.strictObject({ refresh_token: text(PASSWORD_MAX_BYTES) }).meta({
      id: "Logout",
      examples: [{ refresh_token: "from the login" }],
    }),
    status: 204,
    response: z.undefined(),
    handle: async ({ service, body }) => {
      await logout(service, body.refresh_token);
      return { none: true };
    },
  }),
] as const;
