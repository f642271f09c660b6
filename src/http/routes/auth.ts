import { z } from "zod";
import { loginAnswerSchema, loginSchema, refreshAnswerSchema, refreshSchema } from "../../domain/login.ts";
import { route } from "../route.ts";

const example = { examples: [{ refresh_token: "from the login" }] };

export const authRoutes = [
  route({
    method: "POST",
    path: "/api/auth/login",
    access: "public",
    operation: "auth.login",
    summary: "Log in",
    body: loginSchema,
    status: 200,
    response: loginAnswerSchema,
    handle: ({ api, body, address }) => api.auth.login(body, address),
  }),
  route({
    method: "POST",
    path: "/api/auth/refresh",
    access: "public",
    operation: "auth.refresh",
    summary: "Get a new access token",
    body: refreshSchema.meta({ id: "Refresh", ...example }),
    status: 200,
    response: refreshAnswerSchema,
    handle: ({ api, body }) => api.auth.refresh(body.refresh_token),
  }),
  route({
    method: "POST",
    path: "/api/auth/logout",
    access: "public",
    operation: "auth.logout",
    summary: "Revoke a refresh token",
    body: refreshSchema.meta({ id: "Logout", ...example }),
    status: 204,
    response: z.undefined(),
    handle: ({ api, body }) => api.auth.logout(body.refresh_token),
  }),
] as const;
