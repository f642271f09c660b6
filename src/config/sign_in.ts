import { z } from "zod";
import { isLoopback } from "../base/address.ts";
import { ROLES } from "../domain/call/vocabulary.ts";

/** Public address for links, OpenID Connect and secure cookies. "" means the listening address. */
export const publicUrlSchema = z.string().refine((text) => text === "" || isOrigin(text), {
  error: "must be an address such as https://svc.example.org, without a path",
}).default("");

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text.replace(/\/$/, "");
}

// Plain http is safe only on this machine: elsewhere an attacker could impersonate the provider.
function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.search !== "" || url.hash !== "") return false;
  return url.protocol === "https:" ||
    url.protocol === "http:" && isLoopback(url.hostname);
}

/** The OpenID provider; disabled while `issuer` is empty. */
export const oidcSchema = z.strictObject({
  issuer: z.string().refine((text) => text === "" || isIssuer(text), {
    error: "must be an https address, or http on this machine",
  }).default(""),
  client_id: z.string().default(""),
  client_secret: z.string().default(""),
  scopes: z.array(z.string().min(1)).default(["openid", "profile", "email"]),
  role_claim: z.string().min(1).default("roles"),
  roles: z.record(z.string(), z.enum(ROLES)).default({}),
}).refine(({ issuer, client_id }) => issuer === "" || client_id !== "", {
  path: ["client_id"],
  error: "is required with an issuer",
}).refine(({ issuer, scopes }) => issuer === "" || scopes.includes("openid"), {
  path: ["scopes"],
  error: "must contain openid",
}).refine(({ issuer, roles }) => issuer === "" || Object.keys(roles).length > 0, {
  path: ["roles"],
  error: "must map values of role_claim to roles, or users cannot sign in",
});
