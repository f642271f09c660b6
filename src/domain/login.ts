import { z } from "zod";
import { NAME_MAX_BYTES, text } from "./field.ts";

const SECRET_MAX_BYTES = 1_000;

/** Body of POST /api/auth/login (interface 5). */
export const loginSchema = z.strictObject({
  username: text(NAME_MAX_BYTES),
  password: text(SECRET_MAX_BYTES),
})
  .meta({ id: "Login", examples: [{ username: "admin", password: "correct horse battery staple" }] });

/** Body of POST /api/auth/refresh and /api/auth/logout. */
export const refreshSchema = z.strictObject({ refresh_token: text(SECRET_MAX_BYTES) });

const accessToken = {
  access_token: z.string(),
  expires_in: z.int().meta({ description: "seconds" }),
  token_type: z.literal("Bearer"),
};

/** Answer of POST /api/auth/login (contract 2.2). */
export const loginAnswerSchema = z.strictObject({ ...accessToken, refresh_token: z.string() })
  .meta({ id: "LoginAnswer" });

/** Answer of POST /api/auth/refresh: there is no new refresh token (interface 5). */
export const refreshAnswerSchema = z.strictObject(accessToken).meta({ id: "RefreshAnswer" });

export type Login = z.output<typeof loginAnswerSchema>;
export type AccessToken = z.output<typeof refreshAnswerSchema>;
