import { z } from "zod";
import { id, NAME_MAX_BYTES, text } from "../call/field.ts";
import { PASSWORD_MAX_BYTES } from "./password.ts";
import { ROLES } from "../call/vocabulary.ts";

const SECRET_MAX_BYTES = 1_000;
const expiresIn = z.int().meta({ description: "seconds" });

export const loginSchema = z.union([
  z.strictObject({
    username: text(NAME_MAX_BYTES),
    password: text(PASSWORD_MAX_BYTES),
    browser: z.boolean().default(false),
  }),
  z.strictObject({
    code: text(SECRET_MAX_BYTES),
    browser: z.literal(true),
    replace: z.boolean().default(false).meta({
      description: "log in even if the browser is logged in as another user",
    }),
  }),
]).meta({ id: "Login", examples: [{ username: "admin", password: "correct horse battery staple" }] });

export const accessSchema = z.strictObject({
  access_token: z.string(),
  expires_in: expiresIn,
  token_type: z.literal("Bearer"),
}).meta({ id: "RefreshAnswer" });

export const loginAnswerSchema = z.strictObject({
  access_token: z.string(),
  refresh_token: z.string().optional().meta({ description: "absent for browsers" }),
  session: z.string().optional().meta({ description: "browsers only; sent as X-Svc-Session" }),
  expires_in: expiresIn,
  token_type: z.literal("Bearer"),
}).meta({ id: "LoginAnswer" });

export const refreshSchema = z.strictObject({
  refresh_token: text(SECRET_MAX_BYTES).optional(),
}).meta({ id: "Refresh", examples: [{ refresh_token: "from the login" }] });

export const whoamiSchema = z.strictObject({
  subject: z.string().meta({
    description: "name in the journal: user:<name>, token:<name>, worker:<id>, bee",
  }),
  user_id: id.nullable(),
  name: z.string(),
  role: z.enum(ROLES).nullable(),
  scopes: z.array(z.string()),
  by: z.enum(["key", "login", "token", "run"]).meta({
    description: "`key`: ctl with access to the signing key · `token`: a named token · `run`: an agent's run",
  }),
}).meta({ id: "Whoami" });
export type Whoami = z.output<typeof whoamiSchema>;

export const codeSchema = z.strictObject({
  code: z.string(),
  expires_in: expiresIn,
  url: z.string().meta({ description: "address of the console; append #code= and the code" }),
}).meta({ id: "ConsoleCode" });

/** Target of a sign-in: a path of this service, never another host. */
export const returnPath = z.string().max(1_000)
  .regex(/^\/(?![/\\])[^\\\s#]*$/, { error: "must be a path of this service such as /" })
  .default("/")
  .meta({ type: "string", default: "/" });

const answer = z.string().max(4_000).optional();

/** Query that OpenID providers send back. The library reads it. */
export const oidcAnswerQuery = {
  code: answer,
  state: answer,
  iss: answer,
  session_state: answer,
  error: answer,
  error_description: answer,
  error_uri: answer,
  scope: answer,
  authuser: answer,
  hd: answer,
  prompt: answer,
};

export type LoginInput = z.output<typeof loginSchema>;
export type Login = z.output<typeof loginAnswerSchema>;
export type AccessToken = z.output<typeof accessSchema>;
export type ConsoleCode = z.output<typeof codeSchema>;
